package docs

import (
	"context"
	"errors"
	"fmt"
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// GOROOT finds the toolchain on this machine: the one this program was built with, else the one that the go command names.
func GOROOT(ctx context.Context) (string, error) {
	if hasLibrary(build.Default.GOROOT) {
		return build.Default.GOROOT, nil
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("docs: ask the go command for GOROOT: %w", err)
	}
	goroot := strings.TrimSpace(string(out))
	if !hasLibrary(goroot) {
		return "", errors.New("docs: no library source in GOROOT " + goroot)
	}
	return goroot, nil
}

func hasLibrary(goroot string) bool {
	if goroot == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(goroot, "src", "builtin", "builtin.go"))
	return err == nil
}
