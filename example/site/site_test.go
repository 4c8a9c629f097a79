package site_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/example/site"
)

func TestReplicasShareTheirPages(t *testing.T) {
	for shelf, want := range map[string]struct{ first, second string }{
		site.PathPages: {"Bellwether;fwd=uri-miss;stored", "Bellwether;hit;ttl=59"},
		site.PathHot:   {"Bellwether;fwd=uri-miss;stored", "Bellwether;hit;ttl=0"},
		site.PathPlain: {"plain;fwd=uri-miss;stored", "plain;hit"},
	} {
		t.Run(shelf, func(t *testing.T) {
			fleet := start(t)
			urls := fleet.URLs(shelf + "net/http")

			first := get(t, urls[0])
			assert.Equal(t, http.StatusOK, first.status)
			assert.Equal(t, "package net/http", first.body)
			assert.Equal(t, want.first, how(first))
			assert.Equal(t, "1", first.header.Get(site.HeaderReplica))
			assert.Equal(t, "text/html; charset=utf-8", first.header.Get("Content-Type"))

			second := get(t, urls[1])
			assert.Equal(t, first.body, second.body)
			assert.Contains(t, how(second), strings.TrimRight(want.second, "0123456789"))
			assert.Equal(t, "2", second.header.Get(site.HeaderReplica), "this replica answers, whoever rendered")
			assert.Equal(t, first.header.Get(site.HeaderRendering), second.header.Get(site.HeaderRendering))
			assert.Equal(t, 1, fleet.Origin.Count("net/http"))
		})
	}
}

func how(a answer) string { return a.header.Get("Cache-Status") }

func TestIndexIsCachedToo(t *testing.T) {
	urls := start(t).URLs("/")
	assert.Equal(t, "all packages", get(t, urls[0]).body)
	assert.Contains(t, how(get(t, urls[1])), ";hit")
}

func TestAHeadIsAnsweredFromTheGet(t *testing.T) {
	fleet := start(t)
	get(t, fleet.URLs("/pkg/os")[0])
	head := send(t, http.MethodHead, fleet.URLs("/pkg/os")[1], nil)
	assert.Contains(t, how(head), ";hit")
	assert.Equal(t, "10", head.header.Get("Content-Length"), "of the page")
	assert.Equal(t, 1, fleet.Origin.Count("os"))
}

func TestUnknownPackagesAreRemembered(t *testing.T) {
	fleet := start(t)
	for _, url := range append(fleet.URLs("/pkg/unknown"), fleet.URLs("/pkg/unknown")...) {
		assert.Equal(t, http.StatusNotFound, get(t, url).status)
	}
	assert.Equal(t, 1, fleet.Origin.Count("unknown"))
}

func TestNamesThatCanNotExistNeverReachTheCache(t *testing.T) {
	fleet := start(t)
	for _, path := range []string{"/pkg/", "/pkg/internal/x", "/pkg/a%00b", "/pkg/a//b", "/pkg/%2e%2e/%2e%2e/etc/passwd", "/elsewhere"} {
		url := fleet.Replicas[0].URL + path
		assert.Equal(t, http.StatusNotFound, get(t, url).status, path)
		assert.Equal(t, http.StatusNotFound, held(t, url).status, path)
	}
	assert.Equal(t, http.StatusNotFound, send(t, http.MethodDelete, fleet.Replicas[0].URL+"/pkg/internal/x", nil).status)
}

func TestDeletedAtOneGoneAtAll(t *testing.T) {
	for _, shelf := range []string{site.PathPages, site.PathHot, site.PathPlain} {
		t.Run(shelf, func(t *testing.T) {
			urls := start(t).URLs(shelf + "os")
			assert.Equal(t, http.StatusGatewayTimeout, held(t, urls[1]).status, "only-if-cached renders nothing")
			first := get(t, urls[0])
			assert.Equal(t, http.StatusOK, held(t, urls[1]).status)
			assert.Equal(t, http.StatusNoContent, send(t, http.MethodDelete, urls[1], nil).status)
			assert.Equal(t, http.StatusGatewayTimeout, held(t, urls[0]).status)
			assert.NotEqual(t, first.header.Get(site.HeaderRendering), get(t, urls[0]).header.Get(site.HeaderRendering))
		})
	}
}

func TestFailuresAreTold(t *testing.T) {
	got := get(t, start(t).URLs("/pkg/broken")[0])
	assert.Equal(t, http.StatusInternalServerError, got.status)
	assert.Contains(t, got.body, "can't be read")
	assert.NotContains(t, how(got), "stored")
}

func TestGateHoldsRenderingsBack(t *testing.T) {
	fleet := start(t)
	gate := fleet.Origin.Hold("os")
	done := make(chan answer)
	go func() { done <- get(t, fleet.URLs("/pkg/os")[0]) }()
	<-gate.Entered()
	assert.Equal(t, 1, fleet.Underway())
	assert.Equal(t, http.StatusGatewayTimeout, held(t, fleet.URLs("/pkg/os")[1]).status)
	gate.Open()
	gate.Open()
	assert.Equal(t, http.StatusOK, (<-done).status)
	assert.Equal(t, 1, fleet.Origin.Count("os"))
}

func TestAddresses(t *testing.T) {
	for addr, want := range map[string]string{
		"0.0.0.0:0":        "not a loopback address",
		":0":               "not a loopback address",
		"localhost:0":      "not a loopback address",
		"127.0.0.1":        "missing port",
		"127.0.0.1:http":   "not a number",
		"127.0.0.1:99999":  "not a number",
		"[2001:db8::1]:80": "not a loopback address",
	} {
		_, err := site.Start(nil, nil, site.Options{Replicas: 1, Addr: addr})
		require.ErrorContains(t, err, want, addr)
	}
}
