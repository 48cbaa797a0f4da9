package script

import "time"

// Kinds of adjustments.
const (
	Refund     = iota // Refund takes calls off the period that ends at Reset.
	Debt              // Debt adds calls to the period that ends at Reset.
	DebtOpened        // DebtOpened adds calls to whatever period is open, or opens one.
	Floor             // Floor raises the count until Reset to at least so many calls.
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

// Adjusted returns how many adjustments were made according to a reply.
func Adjusted(reply string) int {
	n := 0
	for i := range len(reply) {
		n += int(reply[i])
	}
	return n
}
