package faultproxy

import "syscall"

// relisten gives a listening socket another backlog. Linux takes that at any time.
func relisten(fd uintptr, backlog int) error { return syscall.Listen(int(fd), backlog) }
