// Package traffic tests a gateway that serves definitions from files, as a process:
// its limits, rights, upstreams, streams and protocols. It holds tests only.
package traffic

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
