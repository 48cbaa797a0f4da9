package source

import (
	"crypto/sha256"
	"maps"
	"slices"
	"sync"

	"github.com/sluicegate/sluice/internal/definition"
)

// rights deduplicates the access rights of policies that are read together. Many policies
// differ in their limits only, or have equal rights to some APIs. It is discarded after
// the reading, so that it keeps nothing that no policy needs.
type rights struct {
	mu   sync.Mutex
	one  map[[sha256.Size]byte]*definition.Access            // by content
	sets map[[sha256.Size]byte]map[string]*definition.Access // by content in the order of the APIs
}

func newRights() *rights {
	return &rights{
		one:  make(map[[sha256.Size]byte]*definition.Access),
		sets: make(map[[sha256.Size]byte]map[string]*definition.Access),
	}
}

// share replaces the rights of a policy, which nothing else refers to yet, by equal ones
// that were read before.
func (r *rights) share(p *definition.Policy) {
	if len(p.AccessRights) == 0 {
		return
	}
	whole := sha256.New()
	for _, id := range slices.Sorted(maps.Keys(p.AccessRights)) {
		one := p.AccessRights[id]
		text, err := one.MarshalJSON()
		if err != nil {
			return
		}
		if one.APIID == id { // the same text in memory
			one.APIID = id
		}
		sum := sha256.Sum256(text)
		p.AccessRights[id] = known(r, r.one, sum, one)
		_, _ = whole.Write(append([]byte(id+"\n"), sum[:]...)) // never fails
	}
	p.AccessRights = known(r, r.sets, [sha256.Size]byte(whole.Sum(nil)), p.AccessRights)
}

// known returns the value with a sum; one becomes it if there is none.
func known[T any](r *rights, by map[[sha256.Size]byte]T, sum [sha256.Size]byte, one T) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, there := by[sum]; there {
		return before
	}
	by[sum] = one
	return one
}
