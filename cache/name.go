package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
)

const (
	longestName = 512
	digestMark  = "sha256#"
)

var errEmptyKey = errors.New("cache: the key is empty: give every value a key of its own")

// check says whether a call for key may go on, and where its entry is.
func (c *Cache[V]) check(ctx context.Context, key string) (Key, error) {
	if err := ctx.Err(); err != nil && !c.closed.Load() {
		return Key{}, err
	}
	return c.place(key)
}

// place returns where the entry of key is.
func (c *Cache[V]) place(key string) (Key, error) {
	switch {
	case c.closed.Load():
		return Key{}, ErrClosed
	case key == "":
		return Key{}, errEmptyKey
	}
	return Key{Name: nameOf(key), Schema: c.shape}, nil
}

// nameOf returns the key itself, or a digest of it if it is very long. A key that looks like a digest is digested too,
// so that no two keys have one name.
func nameOf(key string) string {
	if len(key) <= longestName && !strings.HasPrefix(key, digestMark) {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return digestMark + hex.EncodeToString(sum[:])
}
