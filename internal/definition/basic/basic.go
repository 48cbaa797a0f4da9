// Package basic is what a definition and its users' sessions say about basic
// authentication (RFC 7617).
package basic

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// User holds a user's password, hashed at rest and never returned.
type User struct {
	Password string         `json:"password"`
	HashType string         `json:"hash_type,omitempty"`
	Unknown  object.Unknown `json:"-"`
}

// UnmarshalJSON reads the whole of User.
func (u *User) UnmarshalJSON(data []byte) error { return unmarshal(data, u) }

// MarshalJSON writes User, unknown members included.
func (u User) MarshalJSON() ([]byte, error) { return object.Marshal(&u) }

// Settings are the members of basic_auth of an API definition.
type Settings struct {
	ExtractFromBody bool           `json:"extract_from_body,omitempty"`    // where the header has no credentials, the body does
	BodyUser        string         `json:"body_user_regexp,omitempty"`     // its one group is the user's name
	BodyPassword    string         `json:"body_password_regexp,omitempty"` // its one group is the password
	Unknown         object.Unknown `json:"-"`
}

// UnmarshalJSON reads the whole of Settings.
func (s *Settings) UnmarshalJSON(data []byte) error { return unmarshal(data, s) }

// MarshalJSON writes Settings, unknown members included.
func (s Settings) MarshalJSON() ([]byte, error) { return object.Marshal(&s) }

func unmarshal[T any](data []byte, into *T) error {
	if faults := object.Decode(data, into); len(faults) > 0 {
		return fmt.Errorf("%s: %s", faults[0].Path, faults[0].Message)
	}
	return nil
}

// InBody tells whether credentials may be in the body. s may be nil.
func (s *Settings) InBody() bool { return s != nil && s.ExtractFromBody }

// maxExpression is how long an expression may be, in bytes.
const maxExpression = 1_000

// Check tells everything that is wrong with the settings. s may be nil.
func (s *Settings) Check() []object.Fault {
	var f object.Faults
	if !s.InBody() {
		return nil
	}
	for _, one := range []struct{ path, text string }{{"body_user_regexp", s.BodyUser}, {"body_password_regexp", s.BodyPassword}} {
		if wrong := checkGroup(one.text); wrong != "" {
			f.Add(one.path, wrong)
		}
	}
	return f
}

// checkGroup says what is wrong with an expression that is to take one part out of
// a body.
func checkGroup(text string) string {
	switch {
	case text == "":
		return "is needed with extract_from_body: a regular expression with one group in parentheses, such as <User>([^<]*)</User>"
	case len(text) > maxExpression:
		return fmt.Sprintf("has %d bytes; at most %d are allowed", len(text), maxExpression)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err == nil {
		_, err = regexp.Compile(text) // which refuses what would be too large
	}
	if err != nil {
		return "must be a regular expression in the syntax of RE2, without look-around and back-references: " + err.Error()
	}
	if n := parsed.MaxCap(); n != 1 {
		return fmt.Sprintf("must have one group in parentheses, not %d: it is what is taken; (?:…) groups without taking", n)
	}
	return ""
}
