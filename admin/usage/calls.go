package usage

import (
	"context"
	"time"

	rows "github.com/sluicegate/sluice/admin/store/usage"
)

// Calls are how often something was called, and how many of the calls were refused,
// failed, or answered with a status from 400 on.
type Calls = rows.Calls

// CallsOfAPIs returns the calls of some APIs of an organisation in the last span and the
// begun hour before it. APIs without calls are left out.
func (s *Service) CallsOfAPIs(ctx context.Context, org string, apis []string, span time.Duration) (map[string]Calls, error) {
	return rows.CallsOfAPIs(ctx, s.deps.Store, org, apis, s.deps.Now().Add(-span))
}

// CallsOfKeys is CallsOfAPIs for keys, by their identities.
func (s *Service) CallsOfKeys(ctx context.Context, org string, identities []string, span time.Duration) (map[string]Calls, error) {
	keys := make([]string, len(identities))
	for i, identity := range identities {
		keys[i] = s.keyOf(identity)
	}
	counted, err := rows.CallsOfKeys(ctx, s.deps.Store, org, keys, s.deps.Now().Add(-span))
	if err != nil {
		return nil, err
	}
	calls := make(map[string]Calls, len(counted))
	for i, identity := range identities {
		if of, ok := counted[keys[i]]; ok {
			calls[identity] = of
		}
	}
	return calls, nil
}
