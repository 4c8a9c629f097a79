package redislock

import (
	"fmt"
	"strings"
)

// Space is the prefix of a family of Redis keys. All keys of one name share a cluster slot, whatever the name holds.
type Space string

// Validate refuses a prefix that would itself be taken for a hash tag.
func (s Space) Validate() error { return s.validate("prefix") }

// validate calls the prefix by the name of the option that it is from.
func (s Space) validate(option string) error {
	if strings.ContainsAny(string(s), "{}") {
		return fmt.Errorf("redislock: %s is %q, must not hold braces: they choose the cluster slot", option, string(s))
	}
	return nil
}

// Key returns the Redis key that plays role for name: prefix:role:{name}. Redis Cluster hashes what stands between
// the first brace and the next closing one, so a name that holds braces is cut short, but for all its keys alike.
// Only the empty name and one that begins with a closing brace would leave nothing to hash, and the whole key would
// count; they are moved along.
func (s Space) Key(role, name string) string {
	if name == "" || strings.HasPrefix(name, "}") {
		return string(s) + ":" + role + "~:{~" + name + "}"
	}
	return string(s) + ":" + role + ":{" + name + "}"
}
