package snapshot

import (
	"iter"
	"strings"

	"github.com/sluicegate/sluice/gateway/internalcall"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/frozen"
)

// renames collects the names that APIs got and lost, so that a name that many APIs
// have is written once however many of them change.
type renames map[string]*rename

type rename struct {
	gone map[string]bool // ids
	came []string
}

// add records that an API has changed, with its definition before and after, either
// of which may be nil.
func (r renames) add(old, now *definition.API) {
	if old != nil && now != nil && old.Name == now.Name && old.OrgID == now.OrgID {
		return
	}
	if old != nil && old.Name != "" {
		one := r.entry(old)
		if one.gone == nil {
			one.gone = make(map[string]bool)
		}
		one.gone[old.ID] = true
	}
	if now != nil && now.Name != "" {
		one := r.entry(now)
		one.came = append(one.came, now.ID)
	}
}

func (r renames) entry(def *definition.API) *rename {
	key := internalcall.Key(def.OrgID, def.Name)
	if r[key] == nil {
		r[key] = new(rename)
	}
	return r[key]
}

// write updates the ids of a name.
func (r *rename) write(key string, all *frozen.Edit[ids]) {
	var left []string
	if before, known := all.Get(key); known {
		for id := range before.each() {
			if !r.gone[id] {
				left = append(left, id)
			}
		}
	}
	if left = append(left, r.came...); len(left) == 0 {
		all.Delete(key)
	} else {
		all.Set(key, ids(strings.Join(left, idSeparator)))
	}
}

// ids are those of the APIs that have a name, joined. Nearly all names are those of
// one API, whose id needs no list then.
type ids string

// idSeparator stands between two ids. No id contains it.
const idSeparator = " "

func (i ids) each() iter.Seq[string] { return strings.SplitSeq(string(i), idSeparator) }

// only returns the id when there is just one.
func (i ids) only() (id string, ok bool) { return string(i), !strings.Contains(string(i), idSeparator) }
