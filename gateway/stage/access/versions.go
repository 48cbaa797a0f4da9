package access

import (
	"encoding/binary"
	"runtime"
	"sync"
	"weak"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/rights"
)

// The text does not reveal which versions exist.
var versionDenied = pipeline.NewRejection(pipeline.ReasonVersionDenied, 403, noAccess)

// versionTable shares sets of versions between keys with the same versions. It holds
// sets weakly: they are freed with the last grant that uses them.
type versionTable struct {
	mu    sync.Mutex
	known map[string]weak.Pointer[pipeline.VersionSet] // by the places
}

// find returns the versions of an API that a key lists, or nil when calls cannot choose
// a version: the list has no meaning then. Unknown names are ignored, and a key that
// lists no version may use none.
func (t *versionTable) find(def *definition.API, listed []rights.Item[string]) *pipeline.VersionSet {
	names := def.VersionNames()
	if len(names) == 0 {
		return nil
	}
	may := make(map[string]bool, len(listed))
	for _, item := range listed {
		may[item.Value] = true
	}
	var places []int
	var id []byte
	for at, name := range names {
		if may[name] {
			places = append(places, at)
			id = binary.AppendUvarint(id, uint64(at))
		}
	}
	return t.share(string(id), places)
}

func (t *versionTable) share(id string, places []int) *pipeline.VersionSet {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.known[id].Value(); known != nil {
		return known
	}
	made := pipeline.NewVersionSet(places)
	if t.known == nil {
		t.known = make(map[string]weak.Pointer[pipeline.VersionSet])
	}
	t.known[id] = weak.Make(made)
	runtime.AddCleanup(made, t.forget, id)
	return made
}

// forget removes a set that was freed, unless it has been made again.
func (t *versionTable) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known[id].Value() == nil {
		delete(t.known, id)
	}
}
