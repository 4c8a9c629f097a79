//go:build !linux

package faultproxy

import "errors"

func relisten(uintptr, int) error { return errors.New("faultproxy: a black hole needs Linux") }
