package redistest

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"
)

// Main is for the TestMain of packages whose tests wait more than they work, each on a server of its own, and break connections on
// purpose: six run at a time, go-redis does not log, and in the end no goroutine may be left.
func Main(m *testing.M) {
	logging.Disable()
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

// leaked waits for what ends by itself: after an acquire without an answer, the locker tries to take it back for the
// lease's time and 10 s, and go-redis holds on to a command on a silent server for up to four times 5 s.
func leaked() error {
	const patience = 25 * time.Second
	for began := time.Now(); ; {
		err := goleak.Find()
		if err == nil || time.Since(began) > patience {
			return err
		}
	}
}
