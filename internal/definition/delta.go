package definition

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// DeltaEncoding is what A-IM and IM call a Delta (RFC 3229).
const DeltaEncoding = "sluice-delta"

// AwayHeader names, in an answer 503 of the admin, what the admin lacks, so that gateways
// report it and not the admin.
const AwayHeader = "X-Sluice-Away"

// AwayDatabase is the value of AwayHeader for the admin's database.
const AwayDatabase = "database"

// A Delta is the difference between one configuration and a known earlier one.
type Delta struct {
	Revision string `json:"revision"` // of the configuration that comes of it

	// By id, objects as they are now; null for those that are gone.
	APIs     map[string]json.RawMessage `json:"apis,omitempty"`
	Policies map[string]json.RawMessage `json:"policies,omitempty"`

	Caches         map[string]int64 `json:"caches,omitempty"` // all of them, as in Bundle
	ConfirmedEmpty bool             `json:"confirmed_empty,omitempty"`
	Secrets        Secrets          `json:"secrets,omitempty"` // likewise
	Digest         string           `json:"digest"`            // of all objects that come of it
}

// IsGone reports whether an object of a Delta stands for one that is gone.
func IsGone(object json.RawMessage) bool { return len(object) == 0 || isNull(object) }

// A Kind is what an object of a configuration is.
type Kind byte

// The kinds.
const (
	KindAPI    Kind = 'a'
	KindPolicy Kind = 'p'
)

// A Sum identifies one object of a configuration by its JSON, byte for byte.
type Sum [16]byte

// SumOf returns the sum of an object.
func SumOf(kind Kind, object []byte) Sum {
	h := sha256.New()
	_, _ = h.Write([]byte{byte(kind)}) // a hash takes everything
	_, _ = h.Write(object)
	return Sum(h.Sum(nil)[:16])
}

// A Digest is the sum of all objects of a configuration, in no order: one object
// that changes takes two additions. The zero value is that of no objects.
type Digest struct{ high, low uint64 }

// Add adds an object.
func (d *Digest) Add(s Sum) {
	d.high += binary.BigEndian.Uint64(s[:8])
	d.low += binary.BigEndian.Uint64(s[8:])
}

// Remove takes an object out.
func (d *Digest) Remove(s Sum) {
	d.high -= binary.BigEndian.Uint64(s[:8])
	d.low -= binary.BigEndian.Uint64(s[8:])
}

// String returns 32 hexadecimal digits.
func (d Digest) String() string { return fmt.Sprintf("%016x%016x", d.high, d.low) }
