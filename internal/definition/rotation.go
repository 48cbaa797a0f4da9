package definition

import "slices"

// A Credential is one key of a session that has had several.
type Credential struct {
	// Hash of the key.
	// Example: "9f86d081884c7d65"
	Hash string `json:"key_hash"`
	// Unix seconds from which the key is not valid; 0 is no end.
	// Example: 1795852800
	Retires int64   `json:"retires,omitempty"`
	Unknown Unknown `json:"-"`
}

// SuccessorOf returns the identity of the session that a key stands for which is
// not its first, "" when the session is the key's own.
func (s *Session) SuccessorOf() string {
	if s.Extra == nil {
		return ""
	}
	return s.Extra.SuccessorOf
}

// Credentials returns the keys of a session that has had several, the newest
// last; nil when there is only the one under whose hash it is stored.
func (s *Session) Credentials() []Credential {
	if s.Extra == nil {
		return nil
	}
	return s.Extra.Keys
}

// SetCredentials sets what Credentials returns. The session must be the caller's own.
func (s *Session) SetCredentials(all []Credential) {
	if s.Extra == nil && all == nil {
		return
	}
	if s.Extra == nil {
		s.Extra = new(Extra)
	}
	s.Extra.Keys, s.Extra.SuccessorOf = all, ""
}

// Credential returns the key of that hash, and whether it is one of the
// session's, which is stored under identity.
func (s *Session) Credential(identity, hash string) (Credential, bool) {
	all := s.Credentials()
	if all == nil {
		return Credential{Hash: hash}, hash == identity
	}
	i := slices.IndexFunc(all, func(c Credential) bool { return c.Hash == hash })
	if i < 0 {
		return Credential{}, false
	}
	return all[i], true
}

// SameCredentials reports whether two sessions have the same keys, which end at the
// same times.
func SameCredentials(a, b *Session) bool {
	return slices.EqualFunc(a.Credentials(), b.Credentials(), func(x, y Credential) bool { return x.Hash == y.Hash && x.Retires == y.Retires })
}

// NewSuccessor returns what is stored under the hash of a further key of the
// session that is stored under identity. It is valid only while that session has
// it among its Credentials.
func NewSuccessor(identity, org string) *Session {
	return &Session{OrgID: org, Extra: &Extra{SuccessorOf: identity}}
}
