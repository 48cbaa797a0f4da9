// Package system tests the whole product as processes: the admin, gateways, the
// database, the store, the command line, crashes and recovery. It holds tests only.
package system

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
