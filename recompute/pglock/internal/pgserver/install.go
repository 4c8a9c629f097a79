package pgserver

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// places are where systems put the programs of a server, which many keep off the PATH.
var places = []string{
	"/usr/lib/postgresql/*/bin", "/usr/libexec/postgresql*", "/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
}

// find returns the folder of initdb and postgres: that of the PATH, else of the newest version.
func find() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	for _, place := range places {
		found, _ := filepath.Glob(filepath.Join(place, "initdb"))
		slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(b, a)) })
		for _, initdb := range found {
			if _, err := os.Stat(filepath.Join(filepath.Dir(initdb), "postgres")); err == nil {
				return filepath.Dir(initdb), nil
			}
		}
	}
	return "", ErrMissing
}

// other is who runs the server in place of root, whom PostgreSQL refuses; nil when we are not root.
func other() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("pgserver: PostgreSQL doesn't run as root, and the user whom its packages bring is missing: %w", err)
	}
	uid, wrongUID := strconv.ParseUint(u.Uid, 10, 32)
	gid, wrongGID := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(wrongUID, wrongGID)
}
