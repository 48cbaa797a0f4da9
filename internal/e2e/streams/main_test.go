// Package streams tests the event streams of a gateway that runs as a process, with a real
// message broker. It holds tests only.
package streams

import (
	"os"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

// object is a JSON object; settings configure a process.
type (
	object   = rig.Object
	settings = rig.Settings
)

func TestMain(m *testing.M) { os.Exit(rig.Main(m)) }
