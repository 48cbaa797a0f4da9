package source

import (
	"context"
	"slices"

	"github.com/sluicegate/sluice/internal/definition"
)

// OfOrgs returns a source of what src has of some organisations, and of none: objects
// without an organisation are everybody's. Without a list it is src itself.
func OfOrgs(src Source, orgs []string) Source {
	if len(orgs) == 0 {
		return src
	}
	return &ofOrgs{src, orgs}
}

type ofOrgs struct {
	Source
	orgs []string
}

// Next implements Source.
func (o *ofOrgs) Next(ctx context.Context, have string) (*definition.Bundle, error) {
	b, err := o.Source.Next(ctx, have)
	if err != nil {
		return nil, err
	}
	own := *b
	own.APIs = slices.DeleteFunc(slices.Clone(b.APIs), func(api *definition.API) bool { return o.excludes(api.OrgID) })
	own.Policies = slices.DeleteFunc(slices.Clone(b.Policies), func(p *definition.Policy) bool { return o.excludes(p.OrgID) })
	// The bundle is not empty, but these organisations may well have no API.
	own.ConfirmedEmpty = b.ConfirmedEmpty || len(b.APIs) > len(own.APIs)
	return &own, nil
}

// Report implements reporter.
func (o *ofOrgs) Report(revision string, failed map[string]error) {
	if r, ok := o.Source.(reporter); ok {
		r.Report(revision, failed)
	}
}

func (o *ofOrgs) excludes(org string) bool { return org != "" && !slices.Contains(o.orgs, org) }
