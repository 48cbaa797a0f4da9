package stream

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Phase is what a connector or a stream does.
type Phase string

// The phases.
const (
	Starting     Phase = "starting"
	Running      Phase = "running"
	Waiting      Phase = "waiting"      // there is no demand
	Reconnecting Phase = "reconnecting" // the connection is lost; it mends by itself
	Failing      Phase = "failing"      // it does not mend without a change
	Draining     Phase = "draining"
	Stopped      Phase = "stopped"
)

// State is what operators see of a connector. Its methods may be called by any goroutine.
// The connector keeps it, but for the errors that an output settles messages with: these
// the engine records.
type State struct {
	Messages atomic.Uint64 // that it took in or gave out
	Bytes    atomic.Uint64
	Attempts atomic.Uint64    // to connect, or of HTTP outputs to send
	Errors   [4]atomic.Uint64 // by Class
	Again    atomic.Uint64    // messages that came or went once more
	Clients  atomic.Int64     // connected clients
	Dropped  atomic.Uint64    // clients that were too slow
	Lag      atomic.Int64     // messages that wait at the source; -1: not known

	mu     sync.Mutex
	phase  Phase
	since  time.Time
	last   error
	lastAt time.Time
}

// Enter sets the phase.
func (s *State) Enter(p Phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != p {
		s.phase, s.since = p, time.Now()
	}
}

// Fail records an error, which has no secrets and no payload.
func (s *State) Fail(err error) {
	s.Errors[ClassOf(err)].Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.lastAt = err, time.Now()
}

// Phase returns the phase and since when it is so.
func (s *State) Phase() (Phase, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase, s.since
}

// Last returns the last error, nil for none, and when it was.
func (s *State) Last() (at time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastAt, s.last
}
