package site_test

import (
	"bufio"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/example/site"
)

func named(t *testing.T, url, name string) answer {
	t.Helper()
	return send(t, http.MethodGet, url, http.Header{"Cookie": {"name=" + name}})
}

func TestWhatIsForOneReaderReachesNoOther(t *testing.T) {
	fleet := start(t)
	urls := fleet.URLs(site.PathYou)
	first := named(t, urls[0], "Ada")
	assert.Equal(t, "<p>Good day, Ada\n", first.body)
	assert.Equal(t, "Bellwether;fwd=uri-miss;detail=private", how(first))

	var readers sync.WaitGroup
	for i := range 20 {
		readers.Go(func() {
			name := fmt.Sprint("reader-", i)
			got := named(t, urls[i%len(urls)], name)
			assert.Equal(t, "<p>Good day, "+name+"\n", got.body)
			assert.NotContains(t, how(got), "hit")
		})
	}
	readers.Wait()
	assert.Contains(t, get(t, urls[0]).body, "whoever you are")
	assert.Equal(t, http.StatusGatewayTimeout, held(t, urls[0]).status, "nothing is stored")
	assert.NotContains(t, named(t, urls[0], "<script>").body, "<script>")
}

func TestAStreamComesEventByEvent(t *testing.T) {
	fleet := start(t)
	began := time.Now()
	got, err := http.Get(fleet.URLs(site.PathLive)[0])
	require.NoError(t, err)
	defer got.Body.Close()
	assert.Equal(t, "Bellwether;fwd=uri-miss;detail=no-lifetime", got.Header.Get("Cache-Status"))
	line, err := bufio.NewReader(got.Body).ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "data: 1 under way at replica 1\n", line)
	assert.Less(t, time.Since(began), 2500*time.Millisecond, "the stream takes 3 s")
}

func TestAReaderWhoLeavesEndsHisStream(t *testing.T) {
	fleet := start(t)
	got, err := http.Get(fleet.URLs(site.PathLive)[0])
	require.NoError(t, err)
	require.NoError(t, got.Body.Close())
	began := time.Now()
	require.Eventually(t, func() bool { return fleet.Underway() == 0 }, 10*time.Second, time.Millisecond)
	assert.Less(t, time.Since(began), 2500*time.Millisecond, "the stream takes 3 s")
}

func TestAnAnswerOfBeforeStandsInForErrors(t *testing.T) {
	urls := start(t).URLs(site.PathFailing)
	assert.Equal(t, "in order\n", get(t, urls[0]).body)
	require.Eventually(t, func() bool { return how(get(t, urls[1])) == "Bellwether;hit;ttl=-1" }, 10*time.Second, 50*time.Millisecond)
	for _, url := range urls {
		got := get(t, url)
		assert.Equal(t, http.StatusOK, got.status)
		assert.Equal(t, "in order\n", got.body)
	}
	assert.Equal(t, http.StatusNoContent, send(t, http.MethodDelete, urls[0], nil).status)
	assert.Equal(t, http.StatusServiceUnavailable, get(t, urls[1]).status, "there is nothing left to stand in")
}
