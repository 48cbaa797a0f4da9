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

// sightings tell which packed entries came twice within about as many others as
// are kept ready: those are worth being kept, while the others would only take the
// room of such. Now and then it takes one for another. It is safe for concurrent
// use.
type sightings struct {
	seen []atomic.Uint64 // a bit for some hashes each
	n    atomic.Int64    // bits that were set
}

// bitsEach is how many bits there are for each entry that is kept ready: with half
// as many bits set as are kept, one in 32 is taken for one that came before.
const bitsEach = 16

func newSightings(ready int) sightings {
	return sightings{seen: make([]atomic.Uint64, (ready*bitsEach+63)/64)}
}

// again takes note of a hash, and tells whether it was seen before.
func (s *sightings) again(hash uint64) bool {
	at := hash >> 40 % uint64(64*len(s.seen)) // the lower bits choose shards and places
	word, bit := &s.seen[at/64], uint64(1)<<(at%64)
	if word.Or(bit)&bit != 0 {
		return true
	}
	if s.n.Add(1) >= int64(64*len(s.seen)/bitsEach) {
		s.n.Store(0)
		for i := range s.seen {
			s.seen[i].Store(0)
		}
	}
	return false
}
