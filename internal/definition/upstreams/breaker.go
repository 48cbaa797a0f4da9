package upstreams

import (
	"encoding/json"
	"time"
)

// A Breaker is when calls are refused because too many of them fail.
type Breaker struct {
	Share    float64       // of the calls of the last ten seconds that failed, in (0, 1]
	Samples  int           // how many calls there must have been
	Return   time.Duration // how long calls are refused
	HalfOpen bool          // afterwards one call is tried; else all are
}

// A CallBreaker is a breaker of the calls of one entry.
type CallBreaker struct {
	Call
	Breaker
}

// A TimeLimit is how long the upstream may take for calls of one entry.
type TimeLimit struct {
	Call
	Timeout time.Duration
}

// breaker is a breaker as it is written.
type breaker struct {
	Threshold float64 `json:"threshold_percent"`
	Samples   int     `json:"samples"`
	Return    float64 `json:"return_to_service_after"`
	NoHalf    bool    `json:"disable_half_open_state"`
}

type callBreaker struct {
	Call
	breaker
}

type timeLimit struct {
	Call
	Timeout float64 `json:"timeout"`
}

// breaker reads the breaker of a whole API.
func (r *reader) breaker(path string, raw json.RawMessage) *Breaker {
	var one struct {
		breaker
		Disabled bool `json:"disabled"`
	}
	if !decode(r, path, raw, &one) || one.Disabled {
		return nil
	}
	b := r.limits(path, one.breaker)
	return &b
}

// limits reads when a breaker trips, and for how long.
func (r *reader) limits(path string, one breaker) Breaker {
	b := Breaker{Share: one.Threshold, HalfOpen: !one.NoHalf}
	if !(one.Threshold > 0 && one.Threshold <= 1) {
		r.Add(path+".threshold_percent", "must be a share above 0 and up to 1: 0.5 is half of the calls")
	}
	if one.Samples < 1 || one.Samples > 1_000_000 {
		r.Add(path+".samples", "must be from 1 to 1000000: how many calls there must be before their failures count")
	}
	b.Samples = one.Samples
	b.Return = r.within(path+".return_to_service_after", one.Return, 0.1, 86400, time.Minute)
	return b
}

// limit reads how long calls may take, in seconds.
func (r *reader) limit(path string, seconds float64) time.Duration {
	if !(seconds >= 0.001 && seconds <= 86400) {
		r.Add(path, "must be from 0.001 to 86400 seconds")
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}
