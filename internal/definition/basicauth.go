package definition

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// BasicAuth holds a user's password, hashed at rest and never returned.
type BasicAuth struct {
	// Password, which is stored as a hash and never returned.
	// Example: "correct horse battery staple"
	Password string `json:"password"`
	// Algorithm of a password that is given as a hash, such as bcrypt. Default: the password is given in clear.
	// Example: "bcrypt"
	HashType string  `json:"hash_type,omitempty"`
	Unknown  Unknown `json:"-"`
}

// BasicAuthSettings are the settings of basic authentication (RFC 7617) of an API.
type BasicAuthSettings struct {
	// Whether credentials are taken from the body if the header has none.
	ExtractFromBody bool `json:"extract_from_body,omitempty"`
	// Regular expression whose one group is the user's name in the body, at most 1000 bytes.
	// Example: "<User>([^<]*)</User>"
	BodyUser string `json:"body_user_regexp,omitempty"`
	// Regular expression whose one group is the password in the body, at most 1000 bytes.
	// Example: "<Password>([^<]*)</Password>"
	BodyPassword string  `json:"body_password_regexp,omitempty"`
	Unknown      Unknown `json:"-"`
}

// InBody reports whether credentials may be in the body. s may be nil.
func (s *BasicAuthSettings) InBody() bool { return s != nil && s.ExtractFromBody }

const maxBodyExpression = 1_000 // bytes

// check returns what is wrong with the settings. s may be nil.
func (s *BasicAuthSettings) check() (f object.Faults) {
	if s.InBody() {
		f.Add("body_user_regexp", groupFault(s.BodyUser))
		f.Add("body_password_regexp", groupFault(s.BodyPassword))
	}
	return f
}

// groupFault returns what is wrong with an expression that takes one part out of a
// body, or "".
func groupFault(text string) string {
	switch {
	case text == "":
		return "is needed with extract_from_body: a regular expression with one group in parentheses, such as <User>([^<]*)</User>"
	case len(text) > maxBodyExpression:
		return fmt.Sprintf("has %d bytes; at most %d are allowed", len(text), maxBodyExpression)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err == nil {
		_, err = regexp.Compile(text) // also refuses expressions that are too large
	}
	if err != nil {
		return "must be a regular expression in the syntax of RE2, without look-around and back-references: " + err.Error()
	}
	if n := parsed.MaxCap(); n != 1 {
		return fmt.Sprintf("must have one group in parentheses, not %d: the group is what is taken; (?:…) groups without taking", n)
	}
	return ""
}
