// Package outage_test takes Redis away from a fleet under load and sees who notices.
package outage_test

import (
	"testing"

	"github.com/bellwether-cache/bellwether/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }
