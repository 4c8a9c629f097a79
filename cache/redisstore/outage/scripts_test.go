package outage_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// step is a script whose replies are lost.
type step struct {
	file      string
	also      []string     // commands that do the same without a script
	meanwhile func(*scene) // has it sent where callers would not
	most      int          // see outage
}

var steps = map[string]step{
	"get": {file: "../get.lua", also: []string{"hget"}},
	// Without a number nothing can be published, and nothing kept while deletions by others may be done: each wave computes.
	"begin":   {file: "../begin.lua", most: int(lasts/takes) / 3},
	"set":     {file: "../set.lua"},
	"fail":    {file: "../fail.lua", meanwhile: fail},
	"delete":  {file: "../delete.lua", meanwhile: remove},
	"acquire": {file: "../../../recompute/redislock/acquire.lua"},
	"extend":  {file: "../../../recompute/redislock/extend.lua", meanwhile: extend},
	"release": {file: "../../../recompute/redislock/release.lua"},
}

func TestLosingAllRepliesOfAScriptShowsInNoCall(t *testing.T) {
	t.Parallel()
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(step.file)
			require.NoError(t, err)
			var lost []*faultproxy.Hits
			play(t, outage{
				begin: func(s *scene) error {
					// A script is known by its hash, and by its text when it is sent in full.
					for _, marker := range append(step.also, redis.NewScript(string(text)).Hash(), string(text)) {
						lost = append(lost, s.proxy.On(faultproxy.Rule{Marker: marker, Do: faultproxy.DropReply}))
					}
					return nil
				},
				meanwhile: step.meanwhile,
				most:      step.most,
				end:       func(s *scene) error { s.proxy.Heal(); return nil },
			})
			count := 0
			for _, h := range lost {
				count += h.Count()
			}
			assert.Positive(t, count, "lost replies")
		})
	}
}

// fail asks for what can't be computed.
func fail(s *scene) {
	down := errors.New("the source is down")
	for range 5 {
		_, err := s.members[0].GetOrCompute(ctx, "broken", func(context.Context) (string, error) { return "", down })
		assert.ErrorIs(s.t, err, down)
	}
}

// remove deletes something that nobody asks for: it was done, or is an error.
func remove(s *scene) {
	for range 5 {
		_ = s.members[0].Delete(ctx, "other")
	}
}

// extend computes for longer than a lease goes without being renewed.
func extend(s *scene) {
	runs := 0
	v, err := s.members[0].GetOrCompute(ctx, "long", func(context.Context) (string, error) {
		runs++
		time.Sleep(1500 * time.Millisecond)
		return "v", nil
	})
	assert.NoError(s.t, err)
	assert.Equal(s.t, "v", v)
	assert.Equal(s.t, 1, runs)
}
