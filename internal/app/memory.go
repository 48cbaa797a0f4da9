package app

import (
	"log/slog"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// usableMemory is the share of the available memory that the Go runtime may use;
// the rest is for memory that it does not manage.
const usableMemory = 0.9

// limitMemory sets the runtime's memory limit from the container's limit, or else
// from the machine's memory. GOMEMLIMIT takes precedence.
func limitMemory(log *slog.Logger) {
	available := memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)
	bytes, err := memlimit.SetGoMemLimitWithOpts(memlimit.WithProvider(available), memlimit.WithRatio(usableMemory))
	switch {
	case err != nil:
		log.Warn("the available memory is unknown, so no memory limit is set; set GOMEMLIMIT", "err", err)
	case bytes > 0:
		log.Debug("memory limit set", "mib", bytes>>20)
	}
}
