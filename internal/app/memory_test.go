package app

import (
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"testing"
)

const mib = 1 << 20

// withoutMemoryLimit removes the memory limit until the test ends.
func withoutMemoryLimit(t *testing.T) {
	t.Helper()
	t.Setenv("GOMEMLIMIT", "") // restores it when the test ends
	if err := os.Unsetenv("GOMEMLIMIT"); err != nil {
		t.Fatal(err)
	}
	before := debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
}

func TestMemoryIsLimitedToWhatIsAvailable(t *testing.T) {
	withoutMemoryLimit(t)
	limitMemory(slog.New(slog.DiscardHandler))
	if got := debug.SetMemoryLimit(-1); got < 64*mib || got > 1<<50 {
		t.Errorf("the limit is %d MiB", got/mib)
	}
}

func TestGOMEMLIMITTakesPrecedence(t *testing.T) {
	withoutMemoryLimit(t)
	t.Setenv("GOMEMLIMIT", "700MiB")
	debug.SetMemoryLimit(700 * mib)
	limitMemory(slog.New(slog.DiscardHandler))
	if got := debug.SetMemoryLimit(-1); got != 700*mib {
		t.Errorf("the limit is %d MiB", got/mib)
	}
}
