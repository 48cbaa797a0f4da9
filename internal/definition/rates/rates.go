// Package rates reads how many calls definitions allow in which time, and to
// which paths.
package rates

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/definition/pattern"
)

// List is the list of extended_paths that this package reads.
const List = "rate_limit"

// Bounds of what counters can keep, and of lists.
const (
	MaxCalls   = 1<<31 - 1
	MaxPeriod  = 100 * 365 * 86400 // seconds
	MaxEntries = 10_000
)

// A Path is a rate that all callers of some paths share.
type Path struct {
	Path       string  `json:"path"`             // a pattern, below the listen path
	Method     string  `json:"method,omitempty"` // in upper case; "" is every method
	Rate       float64 `json:"rate"`             // calls; 0 or less limits nothing
	Per        float64 `json:"per"`              // seconds
	IgnoreCase bool    `json:"ignore_case,omitempty"`
	Disabled   bool    `json:"disabled,omitempty"`
}

// Limits tells whether a rate holds anybody back.
func Limits(rate, per float64) bool { return rate > 0 && per > 0 }

// Check tells what is wrong with a rate. Zero and negative numbers limit nothing.
func Check(rate, per float64) []object.Fault {
	var f object.Faults
	switch {
	case math.IsNaN(rate) || rate > MaxCalls:
		f.Addf("rate", "must be at most %d", MaxCalls)
	case rate > 0 && rate != math.Trunc(rate):
		f.Add("rate", "must be a whole number of calls; half a call per second is a rate of 1 per 2 seconds")
	}
	switch {
	case math.IsNaN(per) || per > MaxPeriod:
		f.Addf("per", "must be at most %d seconds", MaxPeriod)
	case per > 0 && math.Abs(per*1000-math.Round(per*1000)) > 1e-6 || per > 0 && per < 0.001:
		f.Add("per", "must be a whole number of milliseconds, given in seconds, such as 0.25")
	}
	return f
}

// Read reads extended_paths.rate_limit out of extended_paths, a JSON object or
// nothing. It returns the entries that limit, in order, and all that is wrong, by
// its path below extended_paths.
func Read(extended json.RawMessage) ([]Path, []object.Fault) {
	var lists struct {
		Rates json.RawMessage `json:"rate_limit"`
	}
	if len(extended) > 0 && extended[0] == '{' {
		_ = json.Unmarshal(extended, &lists) // what is not valid was refused with the object around it
	}
	raw := lists.Rates
	var f object.Faults
	if len(raw) == 0 || raw[0] == 'n' {
		return nil, nil
	}
	if raw[0] != '[' {
		f.Add(List, "must be an array, not "+object.TypeName(raw[0]))
		return nil, f
	}
	var elements []json.RawMessage
	_ = json.Unmarshal(raw, &elements)
	if len(elements) > MaxEntries {
		f.Count(List, len(elements), MaxEntries)
		return nil, f
	}
	var all []Path
	for i, element := range elements {
		var one Path
		faults := object.Decode(element, &one)
		if len(faults) == 0 && !one.Disabled {
			faults = one.check()
		}
		f.Below(object.Item(List, i), faults)
		if len(faults) == 0 && !one.Disabled && Limits(one.Rate, one.Per) {
			all = append(all, one)
		}
	}
	return all, f
}

// check also brings the method into the form that requests are compared with.
func (p *Path) check() []object.Fault {
	var f object.Faults
	if err := pattern.Check(p.Path); err != nil {
		f.Add("path", err.Error())
	}
	p.Method = strings.ToUpper(p.Method)
	if strings.ContainsFunc(p.Method, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		f.Add("method", "must be an HTTP method such as GET, or be left out for all methods")
	}
	f.Below("", Check(p.Rate, p.Per))
	return f
}
