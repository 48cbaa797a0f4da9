package auth

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
)

// FuzzCredential holds what a client may send as its credential against what is
// meant by it, and the key behind it must be found if and only if it is there.
func FuzzCredential(f *testing.F) {
	st := newStore()
	key := issue(f, st, &definition.Session{Alias: "it"})
	s := NewSessions(options(st))
	for _, seed := range []string{"", " ", "Bearer", "bearer  x ", "BEARER\t" + key, key + "0", hasher.Prefix, "eyJvcmciOiJhIiwiaWQiOiJiIn0="} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		token := withoutScheme(value)
		if !bytes.Contains(value, token) {
			t.Fatalf("%q became %q", value, token)
		}
		if len(token) > 0 && (isBlank(token[0]) || isBlank(token[len(token)-1])) {
			t.Fatalf("%q left blanks around %q", value, token)
		}
		if words := strings.Fields(string(value)); len(words) == 1 && !strings.EqualFold(words[0], "bearer") && !bytes.ContainsAny(value, "\n\v\f\r\u0085\u00a0") && string(token) != words[0] {
			t.Fatalf("%q became %q", value, token)
		}
		if len(token) == 0 || len(token) > maxToken {
			return
		}
		sc := s.scope(definition.KeyCredential, "org1")
		e, err := s.find(&sc, token, time.Now())
		if (err == nil) != (string(token) == key) {
			t.Fatalf("%q: %+v, %v", token, e, err)
		}
		if err != nil && credential.HasPrefix(hasher.Prefix, token) && !credential.Check(hasher.Prefix, token) && s.Stats().Malformed == 0 {
			t.Fatalf("%q was looked up", token)
		}
	})
}
