package redisserver

import "syscall"

// dieWithParent asks the kernel to kill the child when its parent ends, even by a kill -9 or a test's timeout.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
