package recompute_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute"
)

func explode(v any) { panic(v) }

func TestAPanicOfTheWorkReachesEachCallerAsAnError(t *testing.T) {
	broken := errors.New("broken")
	for name, value := range map[string]any{"a string": "boom", "an error": broken, "nil": nil, "a number": 42} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *flock) {
				results := f.ask(t.Context(), 20, "key", func(ctx context.Context, seal func()) (string, error) {
					_, _ = f.work(ctx, seal)
					explode(value)
					return "unreached", nil
				})
				close(f.gate)
				for range 20 {
					r := <-results
					p, ok := errors.AsType[*recompute.PanicError](r.err)
					require.True(t, ok, "%v", r.err)
					assert.Contains(t, string(p.Stack), "recompute_test.explode", "where it happened")
					assert.Contains(t, p.Error(), "recompute_test.explode")
					assert.Zero(t, r.value)
					switch value {
					case nil:
						assert.ErrorAs(t, r.err, new(*runtime.PanicNilError))
					case broken:
						assert.ErrorIs(t, r.err, broken)
						fallthrough
					default:
						assert.Equal(t, value, p.Value)
						assert.Contains(t, p.Error(), fmt.Sprint(value))
					}
				}
				assert.EqualValues(t, 1, f.runs.Load())
				f.all(1, f.ask(t.Context(), 1, "key", f.work), "run 2", nil)
			})
		})
	}
}

func TestGoexitOfTheWorkIsAnErrorForEachCaller(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		results := f.ask(t.Context(), 20, "key", func(ctx context.Context, seal func()) (string, error) {
			_, _ = f.work(ctx, seal)
			runtime.Goexit()
			return "unreached", nil
		})
		close(f.gate)
		f.all(20, results, "", recompute.ErrGoexit)
		f.all(1, f.ask(t.Context(), 1, "key", f.work), "run 2", nil)
	})
}

// A panic and Goexit after a value was made must not let the value out as if nothing had happened.
func TestAPanicInADeferredCallOfTheWorkIsAPanic(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		_, err := f.Do(t.Context(), "key", func(context.Context, func()) (string, error) {
			defer explode("late")
			return "value", nil
		})
		require.ErrorAs(t, err, new(*recompute.PanicError))
	})
}

// inChild names what a child process of this test does, see TestMain.
const inChild = "RECOMPUTE_CHILD"

// children are the programs that a child process can be.
var children = map[string]func(){
	"panic":  func() { surviving(func() { panic("boom") }) },
	"goexit": func() { surviving(runtime.Goexit) },
	"abort":  func() { surviving(func() { panic(errors.New("abort handler")) }) },
}

// surviving merges callers with and without a deadline (singleflight gives each of them a channel) for work that ends badly, uses the
// key again, and says so.
func surviving(end func()) {
	tasks := recompute.NewTasks()
	g := recompute.NewGroup[int](tasks, time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			c := context.Background()
			if i%2 == 0 {
				c = ctx
			}
			_, err := g.Do(c, "key", func(context.Context, func()) (int, error) {
				time.Sleep(50 * time.Millisecond)
				end()
				return 1, nil
			})
			fmt.Println("failed:", err != nil)
		})
	}
	all.Wait()
	_ = tasks.Go(func(context.Context) { end() })
	v, err := g.Do(ctx, "key", func(context.Context, func()) (int, error) { return 42, nil })
	fmt.Println("survived:", v, err, tasks.Close(time.Second))
}

func TestAProcessSurvivesWorkThatEndsBadly(t *testing.T) {
	for name := range children {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child := exec.CommandContext(t.Context(), os.Args[0])
			child.Env = append(os.Environ(), inChild+"="+name, "GORACE=atexit_sleep_ms=0")
			out, err := child.CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Equal(t, 20, strings.Count(string(out), "failed: true\n"))
			assert.Contains(t, string(out), "survived: 42 <nil> <nil>\n")
		})
	}
}
