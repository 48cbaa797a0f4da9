package source

import (
	"crypto/sha256"
	"maps"
	"slices"
	"sync"

	"github.com/sluicegate/sluice/internal/definition"
)

// rights are the access rights of the policies that are read together. Many policies
// differ in their limits alone, and of those that differ in their APIs many say the
// same of one: what is equal is kept once. It is as short-lived as the reading, so
// that nothing stays that no policy needs any more.
type rights struct {
	mu   sync.Mutex
	one  map[[sha256.Size]byte]*definition.Access            // by what it says
	sets map[[sha256.Size]byte]map[string]*definition.Access // by what each says, in order of the APIs
}

func newRights() *rights {
	return &rights{
		one:  make(map[[sha256.Size]byte]*definition.Access),
		sets: make(map[[sha256.Size]byte]map[string]*definition.Access),
	}
}

// share has a policy, of which nobody else knows yet, refer to rights that were read
// before where they say the same.
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
		if one.APIID == id { // the same letters twice
			one.APIID = id
		}
		sum := sha256.Sum256(text)
		p.AccessRights[id] = known(r, r.one, sum, one)
		_, _ = whole.Write(append([]byte(id+"\n"), sum[:]...)) // a hash takes everything
	}
	p.AccessRights = known(r, r.sets, [sha256.Size]byte(whole.Sum(nil)), p.AccessRights)
}

// known returns what is known by a sum, which becomes one if nothing is.
func known[T any](r *rights, by map[[sha256.Size]byte]T, sum [sha256.Size]byte, one T) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, there := by[sum]; there {
		return before
	}
	by[sum] = one
	return one
}
