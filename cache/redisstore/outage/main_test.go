// Package outage_test takes Redis away from a fleet under load and sees who notices.
package outage_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silent{}) // connections are broken on purpose
	// The tests wait more than they work, each on a server of its own.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	code := m.Run()
	if code == 0 {
		if err := leaked(); err != nil {
			fmt.Println("goroutines are left:", err)
			code = 1
		}
	}
	os.Exit(code)
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// leaked waits for what ends by itself: a lease whose answer never came is taken back for its time and 10 s.
func leaked() error {
	const patience = 25 * time.Second
	for began := time.Now(); ; {
		err := goleak.Find()
		if err == nil || time.Since(began) > patience {
			return err
		}
	}
}
