package redisstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// names returns the commands without their arguments.
func names(commands []string) (names []string) {
	for _, c := range commands {
		name, _, _ := strings.Cut(c, " ")
		names = append(names, name)
	}
	return names
}

func TestAHitIsOneCommand(t *testing.T) {
	t.Parallel()
	s := serve(t)
	get(t, join[string](t, s.Addr), "k", (&origin[string]{value: "v"}).compute, cache.Computed)

	r := join[string](t, s.Addr)
	commands := redistest.Commands(t, s)
	for range 5 {
		assert.Equal(t, "v", get(t, r, "k", never[string](t), cache.Hit))
	}
	assert.Equal(t, []string{"EVAL", "HGET", "HGET", "HGET", "HGET"}, names(commands.Stop())) // the first asks for the time as well
}

// The server's time is asked for again after a while, by a command that would be sent anyway.
func TestAHitIsOneCommandEvenIfTheClockIsAskedAgain(t *testing.T) {
	t.Parallel()
	s := serve(t)
	r := join[string](t, s.Addr)
	get(t, r, "k", (&origin[string]{value: "v"}).compute, cache.Computed)
	get(t, r, "k", never[string](t), cache.Hit)
	time.Sleep(1100 * time.Millisecond)
	commands := redistest.Commands(t, s)
	for range 3 {
		get(t, r, "k", never[string](t), cache.Hit)
	}
	got := names(commands.Stop())
	require.Len(t, got, 3)
	assert.Contains(t, got[0], "EVAL")
	assert.Equal(t, []string{"HGET", "HGET"}, got[1:])
}

func TestAComputedMissIsAtMostFiveCommands(t *testing.T) {
	t.Parallel()
	s := serve(t)
	r := join[string](t, s.Addr)
	for key, most := range map[string]int{"first": 5, "second": 5} {
		commands := redistest.Commands(t, s)
		get(t, r, key, (&origin[string]{value: "v"}).compute, cache.Computed)
		got := commands.Stop()
		assert.LessOrEqual(t, len(got), most, "%s:\n%s", key, strings.Join(got, "\n"))
	}
}

// Case 12: the merge is bypassed nowhere.
func TestAWaveOnOneReplicaCostsWhatOneCallCosts(t *testing.T) {
	t.Parallel()
	s := serve(t)
	r := join[string](t, s.Addr)
	commands := redistest.Commands(t, s)
	herd(t, []*replica[string]{r}, 100, "k", "v", (&origin[string]{value: "v", takes: 100 * time.Millisecond}).compute)
	got := commands.Stop()
	assert.LessOrEqual(t, len(got), 5, strings.Join(got, "\n"))

	commands = redistest.Commands(t, s)
	herd(t, []*replica[string]{r}, 100, "k", "v", never[string](t))
	got = commands.Stop()
	t.Logf("100 simultaneous hits: %d commands", len(got))
	assert.LessOrEqual(t, len(got), 100, "one each at most; those that come at the same moment share one")
}

// A herd on a cold key costs few commands, however long the computation takes (the holder says that it is alive, the
// others listen), and on a server that knows none of the scripts yet. A value too large to be announced costs each
// other replica one more, to fetch it.
func TestAColdHerdOfAThousandSendsFewCommands(t *testing.T) {
	t.Parallel()
	for size, most := range map[int]int{10: 40, 100 << 10: 49} {
		for _, takes := range []time.Duration{300 * time.Millisecond, 3 * time.Second, 8 * time.Second} {
			t.Run(fmt.Sprintf("%d bytes after %v", size, takes), func(t *testing.T) {
				t.Parallel()
				s := serve(t)
				replicas := fleet[string](t, s.Addr, 10)
				o := origin[string]{value: strings.Repeat("x", size), takes: takes}
				commands := redistest.Commands(t, s)
				herd(t, replicas, 100, "k", o.value, o.compute)
				got := commands.Stop()
				assert.EqualValues(t, 1, o.runs.Load())
				t.Logf("10 × 100: %d commands", len(got))
				assert.LessOrEqual(t, len(got), most, summary(got))
			})
		}
	}
}

// summary counts the commands by their first words.
func summary(commands []string) string {
	count := make(map[string]int)
	for _, c := range commands {
		head, keys, _ := strings.Cut(c, "…")
		count[head[:min(len(head), 60)]+keys[:min(len(keys), 20)]]++
	}
	return fmt.Sprint(count)
}
