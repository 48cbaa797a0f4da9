// Package secret has values that must not be seen: it keeps them out of logs and
// dumps, reads them from the environment or from files, and seals them for storage.
package secret

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// mask is what every printed form of a Value or a Key shows.
const mask = "***"

// A Value is a secret that is printed, logged and encoded as ***. Only Reveal returns
// its content. The zero Value is empty; copies share their content, which never
// changes.
type Value struct {
	// The content is behind a pointer: in an unexported field of another struct,
	// package fmt cannot call the methods below and prints the bare fields, and of a
	// nested pointer it prints only the address.
	content *string
	// Two equal secrets have different pointers, so == would be wrong.
	_ [0]func()
}

// New returns a Value with the given content.
func New(content string) Value {
	if content == "" {
		return Value{}
	}
	return Value{content: &content}
}

// Reveal returns the content. Pass it on at once; never log it or put it in an error.
func (v Value) Reveal() string {
	if v.content == nil {
		return ""
	}
	return *v.content
}

// Empty reports whether v has no content.
func (v Value) Empty() bool { return v.content == nil }

// Equal reports whether presented is v's content, in a time that depends on neither
// content nor length of v. Nothing equals an empty Value: a secret that is not
// configured admits no client. It does not allocate.
func (v Value) Equal(presented []byte) bool {
	var want [sha256.Size]byte
	if v.content != nil {
		want = sumString(*v.content)
	}
	got := sha256.Sum256(presented)
	same := subtle.ConstantTimeCompare(want[:], got[:]) == 1
	return same && v.content != nil
}

// CheckHeader returns an error if a text cannot be sent unchanged as the value of an HTTP
// header: it has control characters, or white space at an end. The error does not quote it.
func CheckHeader(text string) error {
	if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
		return errors.New("has a line break or another control character in it, which an HTTP header cannot hold; want one line of text")
	}
	if strings.Trim(text, " \t") != text {
		return errors.New("begins or ends with a space, which an HTTP header loses; remove it")
	}
	return nil
}

// sumString hashes s through a fixed buffer, since converting a long string to
// bytes would allocate.
func sumString(s string) (sum [sha256.Size]byte) {
	h := sha256.New()
	var buf [64]byte
	for len(s) > 0 {
		n := copy(buf[:], s)
		h.Write(buf[:n])
		s = s[n:]
	}
	h.Sum(sum[:0])
	return sum
}

// String returns ***.
func (v Value) String() string { return mask }

// GoString returns ***, for the verb %#v.
func (v Value) GoString() string { return mask }

// Format writes *** for every verb and flag.
func (v Value) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, mask) }

// MarshalText returns ***.
func (v Value) MarshalText() ([]byte, error) { return []byte(mask), nil }

// MarshalJSON returns "***".
func (v Value) MarshalJSON() ([]byte, error) { return []byte(`"` + mask + `"`), nil }

// MarshalYAML returns ***.
func (v Value) MarshalYAML() (any, error) { return mask, nil }

// LogValue returns ***, for log/slog.
func (v Value) LogValue() slog.Value { return slog.StringValue(mask) }
