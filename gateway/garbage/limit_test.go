package garbage

import (
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"testing"
)

// unlimited has the test begin without a limit on memory, and end with what was.
func unlimited(t *testing.T) {
	t.Helper()
	t.Setenv("GOMEMLIMIT", "") // for the test's end to restore it
	if err := os.Unsetenv("GOMEMLIMIT"); err != nil {
		t.Fatal(err)
	}
	before := debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
}

func TestMemoryIsLimitedToWhatThereIs(t *testing.T) {
	unlimited(t)
	limit(slog.New(slog.DiscardHandler))
	if got := debug.SetMemoryLimit(-1); got < 64*mb || got > 1<<50 {
		t.Errorf("the limit is %d MiB", got/mb)
	}
}

func TestALimitThatIsSetStays(t *testing.T) {
	unlimited(t)
	t.Setenv("GOMEMLIMIT", "700MiB")
	debug.SetMemoryLimit(700 * mb)
	limit(slog.New(slog.DiscardHandler))
	if got := debug.SetMemoryLimit(-1); got != 700*mb {
		t.Errorf("the limit is %d MiB", got/mb)
	}
}
