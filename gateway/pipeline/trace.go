package pipeline

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"time"

	"github.com/sluicegate/sluice/gateway/wire"
)

// Trace is the trace of a request (W3C Trace Context).
type Trace struct {
	ID     [32]byte // lower-case hex; zero bytes: there is no trace
	Parent [16]byte // span of the caller in lower-case hex; zero bytes: the trace begins here
	Span   [16]byte // sent upstream in place of Parent, when Own
	Flags  uint8    // of the traceparent line

	Own       bool // the upstream gets the gateway's traceparent instead of the client's
	Stateless bool // the client's tracestate is not forwarded: there is none, or it has no valid trace

	Steps *Steps // the steps of the request; nil: it is not recorded
}

// Sampled is the flag of a trace that is recorded.
const Sampled = 1

// Steps are the steps of a request that is recorded, in order.
type Steps struct{ List []Step }

// A Step is what a stage did, or one of its requests to data sources.
type Step struct {
	Name       string // of the stage
	Start, End time.Time
	Verdict    Verdict
	Fetch      *Fetch // nil: it is a stage
}

// A Fetch is a request to a data source.
type Fetch struct {
	Source  string   // its name
	Address string   // host and port
	Status  int      // 0 without a response
	Retries int      // further requests that were sent
	Span    [16]byte // that the source was sent
}

// Branch returns the trace of one of several requests that go upstream: each has a span of
// its own.
func (t *Trace) Branch() Trace {
	own := *t
	if own.Steps = nil; own.Own {
		var id [8]byte
		binary.BigEndian.PutUint64(id[:], rand.Uint64()|1)
		hex.Encode(own.Span[:], id[:])
	}
	return own
}

// Extend makes the last step of a kind end at.
func (s *Steps) Extend(kind *StageKind, at time.Time) {
	for i := len(s.List) - 1; i >= 0; i-- {
		if s.List[i].Name == kind.Name {
			s.List[i].End = at
			return
		}
	}
}

// Known reports whether the request is part of a trace.
func (t *Trace) Known() bool { return t.ID[0] != 0 }

// Read reads the trace of a request. A malformed traceparent is dropped, and Own set,
// so that the gateway's replaces it. It does not allocate.
func (t *Trace) Read(call *wire.Call) {
	parent, state := call.Find(wire.NameTraceparent), call.Find(wire.NameTracestate)
	if parent == nil {
		t.Stateless = state != nil
		return
	}
	if !isOnly(call, parent) || !t.parse(call.ValueOf(parent)) {
		t.Own, t.Stateless = true, true
		return
	}
	t.Stateless = state == nil || !mayBeState(call)
}

// isOnly reports whether no other line has the name of f.
func isOnly(call *wire.Call, f *wire.Field) bool {
	for i := range call.Fields {
		if other := &call.Fields[i]; other.Name == f.Name && other.Start != f.Start {
			return false
		}
	}
	return true
}

// The parts of a traceparent line, by their offsets.
const (
	parentID    = len("00-")
	parentSpan  = parentID + 32 + len("-")
	parentFlags = parentSpan + 16 + len("-")
	parentEnd   = parentFlags + 2
)

// parse parses a traceparent line. Later versions may have more members after those
// of version 00.
func (t *Trace) parse(line []byte) bool {
	if len(line) < parentEnd || line[parentID-1] != '-' || line[parentSpan-1] != '-' || line[parentFlags-1] != '-' {
		return false
	}
	version := line[:parentID-1]
	switch {
	case !isHex(version) || string(version) == "ff":
		return false
	case string(version) == "00" && len(line) != parentEnd:
		return false
	case len(line) > parentEnd && line[parentEnd] != '-':
		return false
	}
	id, span, flags := line[parentID:parentSpan-1], line[parentSpan:parentFlags-1], line[parentFlags:parentEnd]
	if !isID(id) || !isID(span) || !isHex(flags) {
		return false
	}
	copy(t.ID[:], id)
	copy(t.Parent[:], span)
	t.Flags = digit(flags[0])<<4 | digit(flags[1])
	return true
}

func isHex(b []byte) bool {
	for _, c := range b {
		if c-'0' >= 10 && c-'a' >= 6 {
			return false
		}
	}
	return true
}

// isID reports whether b is the id of a trace or a span: not all of it is 0.
func isID(b []byte) bool {
	for _, c := range b {
		if c != '0' {
			return isHex(b)
		}
	}
	return false
}

// digit returns the value of a lower-case hex digit.
func digit(c byte) uint8 {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}

// AppendParent appends the value of the traceparent line that goes upstream.
func (t *Trace) AppendParent(dst []byte) []byte {
	const digits = "0123456789abcdef"
	dst = append(append(dst, "00-"...), t.ID[:]...)
	dst = append(append(dst, '-'), t.Span[:]...)
	flags := t.Flags & known
	return append(dst, '-', digits[flags>>4], digits[flags&15])
}

// known are the flags with a meaning; others must not be forwarded.
const known = 3

// maxMembers is how many members tracestate may have.
const maxMembers = 32

// mayBeState reports whether the tracestate lines of a call are valid.
func mayBeState(call *wire.Call) bool {
	members := 0
	for i := range call.Fields {
		f := &call.Fields[i]
		if f.Name != wire.NameTracestate {
			continue
		}
		for rest := call.ValueOf(f); len(rest) > 0; {
			var member []byte
			member, rest, _ = bytes.Cut(rest, comma)
			if member = bytes.Trim(member, " \t"); len(member) == 0 {
				continue
			}
			if members++; members > maxMembers || !isMember(member) {
				return false
			}
		}
	}
	return members > 0
}

var (
	comma  = []byte{','}
	equals = []byte{'='}
)

// isMember reports whether b is a key and a value.
func isMember(b []byte) bool {
	key, value, ok := bytes.Cut(b, equals)
	if !ok || len(key) == 0 || len(key) > 256 || len(value) == 0 || len(value) > 256 {
		return false
	}
	for i, c := range key {
		letter := c-'a' < 26 || c-'0' < 10
		if !letter && (i == 0 || c != '_' && c != '-' && c != '*' && c != '/' && c != '@') {
			return false
		}
	}
	for _, c := range value {
		if c < ' ' || c > '~' || c == '=' {
			return false
		}
	}
	return true
}
