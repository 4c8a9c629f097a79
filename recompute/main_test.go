package recompute_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if run := children[os.Getenv(inChild)]; run != nil {
		run()
		return
	}
	goleak.VerifyTestMain(m)
}
