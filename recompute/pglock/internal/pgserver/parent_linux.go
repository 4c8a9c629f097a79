package pgserver

import "syscall"

// dieWithParent asks the kernel to end the child when its parent ends: SIGQUIT ends a server at once, sessions included.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT} }
