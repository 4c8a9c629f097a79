package locks_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	ttl      = 10 * time.Second
	patience = time.Minute
)

// arm is a way to run work under a lock. open gives one process's way to do that, which waits for the holder unless it asks once.
type arm struct {
	name     string
	asksOnce bool
	open     func(b *testing.B, rdb *redis.Client) func(ctx context.Context, key string, work func()) error
}

// arms are in the order in which results are shown.
var arms = []arm{
	{"bellwether-guard", false, openGuard},
	{"bellwether-lease", true, openLease},
	{"bellwether-unfenced", true, openUnfenced},
	{"redsync", false, openRedsync},
	{"bsm-redislock", false, openBsm},
}
