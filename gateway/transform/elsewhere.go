package transform

import (
	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/transform"
)

// Elsewhere returns the hosts and APIs that the rewrites of a version name, which
// may be nil. Outgoing.Elsewhere counts them from 1.
func Elsewhere(version *definition.Version) ([]transform.Place, error) {
	said, err := read(version)
	if said == nil || err != nil {
		return nil, err
	}
	return said.Places(), nil
}

// number has targets know which place they are at.
func number(said *transform.Rules, list []match.Endpoint[*rule]) {
	places := said.Places()
	if len(places) == 0 {
		return
	}
	at := make(map[string]uint16, len(places))
	for i, place := range places {
		at[place.URL] = uint16(i + 1)
	}
	of := func(to *target) uint16 {
		origin, _ := transform.SplitTarget(to.written)
		return at[origin]
	}
	for _, one := range list {
		one.Value.to.elsewhere = of(one.Value.to)
		for _, t := range one.Value.triggers {
			t.to.elsewhere = of(t.to)
		}
	}
}
