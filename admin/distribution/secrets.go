package distribution

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
)

// secrets are those that definitions may refer to. They do not change.
type secrets struct {
	sealed map[store.SecretName][]byte
	plain  map[store.SecretName]string
}

// openAll decrypts secrets. One that cannot be decrypted is left out, so that gateways
// report the APIs that refer to it.
func (s *Service) openAll(sealed map[store.SecretName][]byte) *secrets {
	all := &secrets{sealed: sealed, plain: make(map[store.SecretName]string, len(sealed))}
	for name, value := range sealed {
		plain, err := s.deps.Secret(name, value)
		if err != nil {
			s.log.Error("gateways do not get a secret", "org", name.Org, "secret", name.Name, "err", err)
			continue
		}
		all.plain[name] = plain
	}
	return all
}

// names returns the secrets that APIs refer to and that there are, each once and in order.
func (s *secrets) names(apis []object) []store.SecretName {
	if s == nil || len(s.plain) == 0 {
		return nil
	}
	used := make(map[store.SecretName]bool)
	for i := range apis {
		for _, name := range apis[i].refers {
			if _, there := s.plain[name]; there {
				used[name] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(used), func(a, b store.SecretName) int {
		return strings.Compare(a.Org+" "+a.Name, b.Org+" "+b.Name)
	})
}

// usedBy returns the secrets that APIs refer to, by organisation and name.
func (s *secrets) usedBy(apis []object) definition.Secrets {
	used := make(definition.Secrets)
	for _, name := range s.names(apis) {
		if used[name.Org] == nil {
			used[name.Org] = make(map[string]string)
		}
		used[name.Org][name.Name] = s.plain[name]
	}
	return used
}

// digest returns 8 hexadecimal digits that change with the secrets that APIs refer to, and
// "" without any. They are computed from the encrypted form and reveal no secret.
func (s *secrets) digest(apis []object) string {
	names := s.names(apis)
	if len(names) == 0 {
		return ""
	}
	sum := sha256.New()
	for _, name := range names { // a hash takes everything
		_, _ = sum.Write([]byte(name.Org + " " + name.Name + "\n"))
		_, _ = sum.Write(s.sealed[name])
	}
	return hex.EncodeToString(sum.Sum(nil)[:4])
}

// secretsOf returns the secrets that an API refers to.
func secretsOf(text []byte) (all []store.SecretName) {
	if !definition.MayReferToSecrets(text) {
		return nil
	}
	var api definition.API
	if json.Unmarshal(text, &api) != nil {
		return nil
	}
	for _, name := range api.SealedSecrets() {
		all = append(all, store.SecretName{Org: api.OrgID, Name: name})
	}
	return all
}
