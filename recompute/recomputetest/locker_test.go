package recomputetest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/recomputetest"
)

func TestTheContractHoldsInABubble(t *testing.T) {
	recomputetest.TestLocker(t, synctest.Test, func(*testing.T) recompute.Locker { return new(recompute.Local) })
}

func TestTheContractHoldsInRealTime(t *testing.T) {
	recomputetest.TestLocker(t, nil, func(*testing.T) recompute.Locker { return new(recompute.Local) })
}

// inChild says that this process is to run the faulty lockers, and fail.
const inChild = "RECOMPUTETEST_FAULTY"

func TestFaultyLockers(t *testing.T) {
	if os.Getenv(inChild) == "" {
		t.Skip("fails on purpose; TestTheContractTellsFaultyLockers runs it in a child process")
	}
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			recomputetest.TestLocker(t, synctest.Test, func(*testing.T) recompute.Locker {
				f := f.faulty
				f.Locker = new(recompute.Local)
				if name == "asks, then takes" {
					f.Locker = new(twoSteps)
				}
				return f
			})
		})
	}
}

func TestTheContractTellsFaultyLockers(t *testing.T) {
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFaultyLockers$", "-test.v")
	child.Env = append(os.Environ(), inChild+"=1", "GORACE=atexit_sleep_ms=0")
	out, err := child.CombinedOutput()
	require.Error(t, err, "the child should have failed")
	for name, f := range faults {
		failed := "--- FAIL: TestFaultyLockers/" + strings.ReplaceAll(name+"/"+f.fails, " ", "_")
		assert.True(t, strings.Contains(string(out), failed), "a locker that %s passes %q", name, f.fails)
	}
}
