package redisstore_test

import (
	"os"
	"testing"

	"github.com/bellwether-cache/bellwether/internal/redistest"
)

func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		os.Exit(work())
	}
	redistest.Main(m)
}
