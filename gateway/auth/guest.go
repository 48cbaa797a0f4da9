package auth

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// A guest is an entry that is unpacked for one request. It allocates nothing: with
// far more keys in use than are kept ready, most requests are of a key that has
// gone again when its next one comes, and what was made for each of them would
// have to be collected. Its texts are parts of the record, which never changes.
type guest struct {
	entry
	session definition.Session
	texts   [4]string // of the session's lists
	grant   pipeline.Grant
	granted bool
}

var guests = sync.Pool{New: func() any { return new(guest) }}

// Grants implements pipeline.Guest.
func (g *guest) Grants() *pipeline.Grants { return &g.grants }

// Grant implements pipeline.Guest.
func (g *guest) Grant() *pipeline.Grant {
	if g.granted {
		return nil
	}
	g.granted = true
	return &g.grant
}

// Release implements pipeline.Guest.
func (g *guest) Release() {
	*g = guest{}
	guests.Put(g)
}

// receive returns the entry of a record, if it is that of the credential, for one
// exchange; else nil.
func receive(host *pipeline.Exchange, record, token []byte, sc *scope) *entry {
	p, is := partsOf(record, token, sc)
	if !is {
		return nil
	}
	g := guests.Get().(*guest)
	if g.session.UnpackShared(p.session, g.texts[:]) != nil {
		g.Release()
		return nil // it is looked up again
	}
	g.text = unsafe.String(unsafe.SliceData(p.text), len(p.text))
	g.fill(record, &p, sc)
	g.hold(&g.session)
	host.Guest = g
	return &g.entry
}

// sightings tell which packed entries come so often among about as many others as
// are kept ready that they are worth being kept: all others would only take the
// room of such, and be garbage soon. Now and then they take one for another. They
// are safe for concurrent use; what two requests see at once may count as one.
type sightings struct {
	seen []atomic.Uint64 // how often some hashes each were seen, in 2 bits
	n    atomic.Int64    // sightings
	most int64           // after so many, all are forgotten
}

const (
	enough    = 3 // sightings after which an entry is kept
	countBits = 2
	perWord   = 64 / countBits
	spread    = 16 // counts for each entry that is kept ready: few are of several hashes
)

func newSightings(ready int) sightings {
	return sightings{seen: make([]atomic.Uint64, (ready*spread+perWord-1)/perWord), most: int64(enough * ready)}
}

// often takes note of a hash, and tells whether it was seen often before.
func (s *sightings) often(hash uint64) bool {
	at := hash >> 40 % uint64(perWord*len(s.seen)) // the lower bits choose shards and places
	word, shift := &s.seen[at/perWord], at%perWord*countBits
	counts := word.Load()
	if counts>>shift%(1<<countBits) == enough {
		return true
	}
	word.CompareAndSwap(counts, counts+1<<shift)
	if s.n.Add(1) >= s.most {
		s.n.Store(0)
		for i := range s.seen {
			s.seen[i].Store(0)
		}
	}
	return false
}
