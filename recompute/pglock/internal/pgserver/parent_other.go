//go:build !linux

package pgserver

import "syscall"

// dieWithParent has nothing to ask for: only Linux ends a child with its parent. Elsewhere Stop has to be called.
func dieWithParent() *syscall.SysProcAttr { return new(syscall.SysProcAttr) }
