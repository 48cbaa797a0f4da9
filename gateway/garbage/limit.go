package garbage

import (
	"log/slog"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// usable is how much of the memory that there is the runtime may use; the rest is for
// what it does not know of.
const usable = 0.9

// limit has the runtime collect before the memory of the container, or without a limit
// of that the machine's, is used up. A limit that somebody has set (GOMEMLIMIT) stays.
func limit(log *slog.Logger) {
	there := memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)
	bytes, err := memlimit.SetGoMemLimitWithOpts(memlimit.WithProvider(there), memlimit.WithRatio(usable))
	switch {
	case err != nil:
		log.Warn("how much memory there is cannot be told: garbage is collected as if there were enough; GOMEMLIMIT sets a limit", "err", err)
	case bytes > 0:
		log.Debug("garbage is collected before as much memory is used", "mib", bytes>>20)
	}
}
