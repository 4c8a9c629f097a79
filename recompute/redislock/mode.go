package redislock

import (
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// mode remembers whether the server runs scripts for this user.
type mode struct{ noScripts atomic.Bool }

func (m *mode) scripts() bool { return !m.noScripts.Load() }

// refused says whether an error means that no script is run here, neither now nor later.
func (m *mode) refused(err error) bool {
	if err == nil || !redis.IsPermissionError(err) && !strings.Contains(err.Error(), "unknown command") {
		return false
	}
	text := strings.ReplaceAll(strings.ToLower(err.Error()), "`", "'") // as older ones quote
	if !strings.Contains(text, "'eval") {                              // the command that is refused; a script that may not do something names another
		return false
	}
	m.noScripts.Store(true)
	return true
}
