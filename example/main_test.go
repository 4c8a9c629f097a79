package main

import (
	"os"
	"testing"

	"github.com/bellwether-cache/bellwether/example/holder"
)

func TestMain(m *testing.M) {
	holder.Main() // in the process that the demonstration kills
	os.Exit(m.Run())
}
