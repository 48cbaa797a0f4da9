package definition

import "github.com/sluicegate/sluice/internal/definition/object"

// Unknown holds what a JSON object said beyond the fields of its struct.
type Unknown = object.Unknown

// The types that encoding/json reads or writes by themselves have methods; all that
// are below them are read and written with them.

// UnmarshalJSON reads an API without validating it; an error is *Problems.
func (a *API) UnmarshalJSON(data []byte) error { return unmarshal(data, a) }

// MarshalJSON writes an API, unknown members included.
func (a API) MarshalJSON() ([]byte, error) { return object.Marshal(&a) }

// UnmarshalJSON reads a policy without validating it; an error is *Problems.
func (p *Policy) UnmarshalJSON(data []byte) error { return unmarshal(data, p) }

// MarshalJSON writes a policy, unknown members included.
func (p Policy) MarshalJSON() ([]byte, error) { return object.Marshal(&p) }

// UnmarshalJSON reads a session without validating it; an error is *Problems.
func (s *Session) UnmarshalJSON(data []byte) error { return unmarshal(data, s) }

// MarshalJSON writes a session, unknown members included.
func (s Session) MarshalJSON() ([]byte, error) { return object.Marshal(&s) }

// UnmarshalJSON reads the access rights to one API; an error is *Problems.
func (a *Access) UnmarshalJSON(data []byte) error { return unmarshal(data, a) }

// MarshalJSON writes the access rights to one API, unknown members included.
func (a Access) MarshalJSON() ([]byte, error) { return object.Marshal(&a) }

// MarshalJSON writes an allowed URL, unknown members included.
func (u AllowedURL) MarshalJSON() ([]byte, error) { return object.Marshal(&u) }

// MarshalJSON writes fields of a type, unknown members included.
func (t TypeFields) MarshalJSON() ([]byte, error) { return object.Marshal(&t) }

// MarshalJSON writes limits of a field, unknown members included.
func (f FieldAccess) MarshalJSON() ([]byte, error) { return object.Marshal(&f) }
