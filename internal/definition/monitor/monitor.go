// Package monitor is what a session says about who is told how much of its quota
// is used.
package monitor

import (
	"fmt"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// Monitor sets a key's own quota thresholds.
type Monitor struct {
	TriggerLimits []float64      `json:"trigger_limits"` // percent of the quota
	Unknown       object.Unknown `json:"-"`
}

// UnmarshalJSON reads the whole of Monitor.
func (m *Monitor) UnmarshalJSON(data []byte) error {
	if faults := object.Decode(data, m); len(faults) > 0 {
		return fmt.Errorf("%s: %s", faults[0].Path, faults[0].Message)
	}
	return nil
}

// MarshalJSON writes Monitor, unknown members included.
func (m Monitor) MarshalJSON() ([]byte, error) { return object.Marshal(&m) }

const maxTriggers = 100

// Check tells everything that is wrong with the thresholds. m may be nil.
func (m *Monitor) Check() []object.Fault {
	var f object.Faults
	if m == nil {
		return nil
	}
	const path = "trigger_limits"
	f.Count(path, len(m.TriggerLimits), maxTriggers)
	for i, limit := range m.TriggerLimits {
		if !(limit > 0 && limit <= 100) {
			f.Add(object.Item(path, i), "must be a percentage of the quota, above 0 and at most 100")
		}
	}
	return f
}
