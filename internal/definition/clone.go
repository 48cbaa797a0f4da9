package definition

import "github.com/sluicegate/sluice/internal/definition/object"

// Clone returns a deep copy: nothing that is reached through it is shared.
func (s *Session) Clone() *Session { return object.Clone(s) }

// Clone returns a deep copy: nothing that is reached through it is shared.
func (p *Policy) Clone() *Policy { return object.Clone(p) }

// Clone returns a deep copy: nothing that is reached through it is shared.
func (a *API) Clone() *API { return object.Clone(a) }

// Clone returns a deep copy: nothing that is reached through it is shared.
func (a *Access) Clone() *Access { return object.Clone(a) }
