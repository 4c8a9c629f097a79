package redistest

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Keys returns all keys of the client's database with the time they have left; -1 is a key that has no TTL. A key that runs out
// meanwhile is left out.
func Keys(t testing.TB, client redis.Cmdable) map[string]time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience) // of use in a Cleanup too
	defer cancel()
	keys := map[string]time.Duration{}
	for scan := client.Scan(ctx, 0, "", 1000).Iterator(); ; {
		if !scan.Next(ctx) {
			if err := scan.Err(); err != nil {
				t.Fatalf("redistest: SCAN: %v", err)
			}
			return keys
		}
		left, err := client.PTTL(ctx, scan.Val()).Result()
		if err != nil {
			t.Fatalf("redistest: PTTL %q: %v", scan.Val(), err)
		}
		if left != -2 { // gone
			keys[scan.Val()] = left
		}
	}
}
