package script

import "time"

// What adjust.lua can do to a quota.
const (
	Refund     = iota // Refund takes calls back from the period that ends at Reset.
	Debt              // Debt adds calls to the period that ends at Reset.
	DebtOpened        // DebtOpened adds calls to whatever period is open, or opens one.
	Floor             // Floor makes sure that at least so many calls are counted until Reset.
)

// An Adjustment corrects one quota in the store.
type Adjustment struct {
	What  byte
	Key   string
	Calls int64
	Reset int64 // unix milliseconds of the period's end; 0 never
}

// PackAdjustments returns the keys and the argument of adjust.lua.
func PackAdjustments(batch []Adjustment) (keys []string, packed string) {
	now := time.Now().UnixMilli()
	keys = make([]string, len(batch))
	p := make([]byte, 0, 25*len(batch))
	for i, a := range batch {
		keys[i] = a.Key
		p = append(p, a.What)
		p = appendNumber(p, a.Calls)
		p = appendNumber(p, a.Reset)
		p = appendNumber(p, max(a.Reset-now, 1))
	}
	return keys, string(p)
}

// Adjusted returns how many adjustments a reply says were done.
func Adjusted(reply string) int {
	n := 0
	for i := range len(reply) {
		n += int(reply[i])
	}
	return n
}
