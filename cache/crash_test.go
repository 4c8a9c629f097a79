package cache_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
)

const child = "BELLWETHER_TEST_CHILD"

// Guarantee 18; case 4: whatever a computation does to its goroutine, the process lives. A crash can't be caught by a
// test, so this is a process of its own.
func TestNothingAComputationDoesKillsTheProcess(t *testing.T) {
	if os.Getenv(child) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=1m")
		cmd.Env = append(os.Environ(), child+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "still alive")
		return
	}
	ends := map[string]func() (string, error){
		"a panic":         func() (string, error) { panic("at the disco") },
		"a nil panic":     func() (string, error) { panic(nil) },
		"an error":        func() (string, error) { panic(errDown) },
		"a runtime panic": func() (string, error) { var nowhere *string; return *nowhere, nil },
		"Goexit":          func() (string, error) { runtime.Goexit(); return "", nil },
		"panic in defer":  func() (string, error) { defer panic("second"); panic("first") },
	}
	for says, end := range ends {
		for _, behind := range []bool{false, true} {
			c, err := cache.New(cache.NewMemory(), cache.Options[string]{Policy: windows, Codec: nil})
			require.NoError(t, err)
			if behind {
				brief := windows
				brief.Fresh = time.Millisecond
				require.NoError(t, c.Close())
				c, err = cache.New(cache.NewMemory(), cache.Options[string]{Policy: brief})
				require.NoError(t, err)
				require.NoError(t, c.Set(t.Context(), "k", "old"))
				time.Sleep(2 * time.Millisecond)
			}
			var callers sync.WaitGroup
			for i := range 10 { // some wait on a context that can end, some on one that can't
				callers.Go(func() {
					ctx := context.Background()
					if i%2 == 0 {
						var cancel func()
						ctx, cancel = context.WithTimeout(ctx, 10*time.Second)
						defer cancel()
					}
					_, err := c.GetOrCompute(ctx, "k", func(context.Context) (string, error) {
						time.Sleep(10 * time.Millisecond)
						return end()
					})
					if behind != (err == nil) {
						panic(fmt.Sprint(says, behind, err))
					}
				})
			}
			callers.Wait()
			require.NoError(t, c.Close())
		}
	}
	fmt.Println("still alive")
}
