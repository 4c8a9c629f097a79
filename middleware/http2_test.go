package middleware_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/middleware"
	"github.com/bellwether-cache/bellwether/stale"
)

func TestOverHTTP2ItIsTheSame(t *testing.T) {
	responses, err := cache.New(cache.NewMemory(), cache.Options[middleware.Response]{Policy: stale.Policy{Fresh: time.Minute}})
	require.NoError(t, err)
	defer responses.Close()
	g := newGate(t)
	server := httptest.NewUnstartedServer(middleware.New(responses, middleware.Options{})(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/stream":
				say(w, "first", "Content-Type: text/event-stream", "Trailer: X-End")
				_ = http.NewResponseController(w).Flush()
				g.pass()
				w.Header().Set("X-End", "1")
			case "/abort":
				say(w, "half", minute)
				panic(http.ErrAbortHandler)
			default:
				say(w, "hello", minute)
			}
		})))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	client := server.Client()

	for range 2 {
		resp, err := client.Get(server.URL + "/a")
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Equal(t, 2, resp.ProtoMajor)
		assert.Equal(t, "hello", string(body))
		assert.EqualValues(t, 5, resp.ContentLength)
		head, err := client.Head(server.URL + "/a")
		require.NoError(t, err)
		assert.Contains(t, head.Header.Get("Cache-Status"), ";hit")
		assert.EqualValues(t, 5, head.ContentLength)
	}
	resp, err := client.Get(server.URL + "/stream")
	require.NoError(t, err)
	first := make([]byte, 5)
	_, err = io.ReadFull(resp.Body, first)
	require.NoError(t, err)
	assert.Equal(t, "first", string(first))
	g.free()
	_, err = io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, "1", resp.Trailer.Get("X-End"))
	resp, err = client.Get(server.URL + "/abort")
	if err == nil {
		_, err = io.ReadAll(resp.Body)
	}
	require.Error(t, err)
	require.NoError(t, middleware.Purge(t.Context(), responses, middleware.Options{}, server.URL+"/a"))
	resp, err = client.Get(server.URL + "/a")
	require.NoError(t, err)
	assert.Contains(t, resp.Header.Get("Cache-Status"), ";stored", "https is another key than http")
}

// Cases 86 and 87 over HTTP/2, where the streams of all clients share a connection.
func TestOverHTTP2WhatIsForOneAloneIsNobodyElses(t *testing.T) {
	responses, err := cache.New(cache.NewMemory(), cache.Options[middleware.Response]{Policy: stale.Policy{Fresh: time.Minute}})
	require.NoError(t, err)
	defer responses.Close()
	g := newGate(t)
	server := httptest.NewUnstartedServer(middleware.New(responses, middleware.Options{})(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			leads := r.Header.Get("X-Me") == "0"
			if leads {
				g.pass()
			}
			set(w, lines(r.Header.Get("X-Say"))...)
			_, _ = io.WriteString(w, r.Header.Get("X-Me"))
		})))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	for i, field := range []string{"Cache-Control: private", minute + "|Set-Cookie: a=b", minute + "|Vary: *", minute + "|Vary: X-Me", "Cache-Control: no-store"} {
		got := make(chan string, 20)
		ask := func(ctx context.Context, me int) {
			r, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprint(server.URL, "/", i), nil)
			assert.NoError(t, err)
			r.Header.Set("X-Me", fmt.Sprint(me))
			r.Header.Set("X-Say", field)
			resp, err := server.Client().Do(r)
			if err != nil {
				got <- fmt.Sprint(me, " left")
				return
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			got <- fmt.Sprint(me, " ", string(body))
		}
		ctx, leave := context.WithCancel(t.Context())
		go ask(ctx, 0)
		g.wait(t)
		for me := 1; me < 10; me++ {
			go ask(t.Context(), me)
		}
		time.Sleep(100 * time.Millisecond)
		if i%2 == 0 {
			leave() // the stream is reset
		}
		go func() { time.Sleep(20 * time.Millisecond); g.open <- struct{}{} }()
		all := map[string]bool{}
		for range 10 {
			select {
			case one := <-got:
				all[one] = true
			case <-time.After(patience):
				t.Fatal("no answer")
			}
		}
		leave()
		for me := 1; me < 10; me++ {
			assert.True(t, all[fmt.Sprint(me, " ", me)], "%s: %v", field, all)
		}
	}
}
