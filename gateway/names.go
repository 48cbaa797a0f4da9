package gateway

import (
	"iter"
	"strings"

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
func (one *naming) write(key string, all *frozen.Edit[ids]) {
	var left []string
	if before, known := all.Get(key); known {
		for id := range before.each() {
			if !one.gone[id] {
				left = append(left, id)
			}
		}
	}
	if left = append(left, one.came...); len(left) == 0 {
		all.Delete(key)
	} else {
		all.Set(key, ids(strings.Join(left, betweenIDs)))
	}
}

// ids are those of the APIs that have a name, one after the other. Nearly all names
// are those of one API, whose id this is, with no list of its own.
type ids string

// betweenIDs stands between two ids. No id holds it.
const betweenIDs = " "

func (i ids) each() iter.Seq[string] { return strings.SplitSeq(string(i), betweenIDs) }

// only returns the id when there is just one.
func (i ids) only() (id string, ok bool) { return string(i), !strings.Contains(string(i), betweenIDs) }
