package pipeline

import (
	"sync"
	"sync/atomic"
	"weak"

	"github.com/sluicegate/sluice/internal/definition"
)

// GrantScope is what a grant was compiled for, besides its key. It holds its objects
// weakly: grants of rarely used keys must not keep replaced configurations alive.
type GrantScope struct {
	API      weak.Pointer[definition.API]
	Policies weak.Pointer[definition.PolicySet]
}

// Grants caches the grants of one key, for each API that it was used with, under the
// policies that it was last used with. The zero value is empty. It is safe for
// concurrent use; a grant that is lost to a race is compiled again.
type Grants struct {
	first atomic.Pointer[Grant] // most keys are used with one API
	more  atomic.Pointer[grantTable]
}

type grantTable struct {
	policies weak.Pointer[definition.PolicySet]
	byAPI    sync.Map // weak.Pointer[definition.API] to *Grant
}

// Find returns the grant for a scope, or nil. It does not allocate.
func (g *Grants) Find(scope GrantScope) *Grant {
	if first := g.first.Load(); first != nil && first.scope == scope {
		return first
	}
	table := g.more.Load()
	if table == nil || table.policies != scope.Policies {
		return nil
	}
	if found, ok := table.byAPI.Load(scope.API); ok {
		return found.(*Grant)
	}
	return nil
}

// Keep stores the grant for a scope, and drops grants of other policies that it finds.
// A grant is stored once: its scope does not change.
func (g *Grants) Keep(scope GrantScope, grant *Grant) {
	grant.scope = scope
	first := g.first.Load()
	if first == nil || first.scope.Policies != scope.Policies || isOlder(first.scope.API, scope.API) {
		g.first.Store(grant)
		return
	}
	table := g.more.Load()
	if table == nil || table.policies != scope.Policies {
		table = &grantTable{policies: scope.Policies}
		g.more.Store(table)
	}
	table.byAPI.Store(scope.API, grant)
}

// isOlder reports whether one definition is the other, or an earlier form of its API,
// whose grants are of no more use.
func isOlder(one, than weak.Pointer[definition.API]) bool {
	if one == than {
		return true
	}
	was, now := one.Value(), than.Value()
	return was == nil || now != nil && was.ID == now.ID
}
