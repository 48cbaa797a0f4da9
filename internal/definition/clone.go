package definition

import "github.com/sluicegate/sluice/internal/definition/object"

// Clone returns a deep copy: nothing that is reached through it is shared.
func (s *Session) Clone() *Session { return object.Clone(s) }

// Clone returns a deep copy: nothing that is reached through it is shared.
func (p *Policy) Clone() *Policy { return object.Clone(p) }

// Clone returns a deep copy: nothing that is reached through it is shared. It lacks the
// secrets of WithSecrets.
func (a *API) Clone() *API {
	if a == nil || a.resolved == nil {
		return object.Clone(a)
	}
	without := *a
	without.resolved = nil
	return object.Clone(&without)
}

// Clone returns a deep copy: nothing that is reached through it is shared.
func (a *Access) Clone() *Access { return object.Clone(a) }
