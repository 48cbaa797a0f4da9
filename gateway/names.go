package gateway

import (
	"github.com/sluicegate/sluice/gateway/handover"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/frozen"
)

// names gathers what APIs are called and no longer called, so that a name that
// many have is written once however many of them change.
type names map[string]*naming

type naming struct {
	gone map[string]bool // ids
	came []string
}

// rename notes that an API has another name, or another API has it.
func (n names) rename(old, now *definition.API) {
	if old != nil && now != nil && old.Name == now.Name && old.OrgID == now.OrgID {
		return
	}
	if old != nil && old.Name != "" {
		one := n.of(old)
		if one.gone == nil {
			one.gone = make(map[string]bool)
		}
		one.gone[old.ID] = true
	}
	if now != nil && now.Name != "" {
		one := n.of(now)
		one.came = append(one.came, now.ID)
	}
}

func (n names) of(def *definition.API) *naming {
	key := handover.Key(def.OrgID, def.Name)
	if n[key] == nil {
		n[key] = new(naming)
	}
	return n[key]
}

// write brings the ids of a name up to date.
func (one *naming) write(key string, all *frozen.Edit[[]string]) {
	before, _ := all.Get(key)
	ids := make([]string, 0, len(before)+len(one.came))
	for _, id := range before {
		if !one.gone[id] {
			ids = append(ids, id)
		}
	}
	if ids = append(ids, one.came...); len(ids) == 0 {
		all.Delete(key)
	} else {
		all.Set(key, ids)
	}
}
