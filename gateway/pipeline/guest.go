package pipeline

// A Guest is a key that is not kept in a form that is ready for requests, but for
// the one exchange that it came with: the memory for it is used again, so that keys
// which come once in a while leave no garbage behind.
type Guest interface {
	// Grants returns the guest's Grants.
	Grants() *Grants
	// Grant returns the memory for a grant of the guest's, once; then nil.
	Grant() *Grant
	// Release ends the guest's stay. Nothing of it may be used afterwards, other
	// than its texts, which never change.
	Release()
}

// HasGuest tells whether the exchange's key is a guest: nothing that is made for
// the key is of use to another request.
func (ex *Exchange) HasGuest() bool { return ex.Guest != nil && ex.Guest.Grants() == ex.Grants }

// NewGrant returns a grant of the exchange's key like that of NewGrant.
func (ex *Exchange) NewGrant() *Grant {
	if ex.HasGuest() {
		if g := ex.Guest.Grant(); g != nil {
			return g.Clear()
		}
	}
	return NewGrant()
}
