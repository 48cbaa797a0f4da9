// Package handover makes the stages by which a request goes on from one API to
// another of the same gateway: for a target that begins with svc://, and for a
// version that is another API.
//
// The request goes on within the process, through the stages of the other API,
// which asks for credentials and counts as if a client had called it: being behind
// another API opens nothing. What the first API changed about the request is what
// the second one sees.
package handover

import (
	"fmt"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/handover"
)

// Stage hands requests over.
type Stage struct {
	ref    pipeline.Ref
	target *match.Target
	join   match.JoinOptions
	strip  bool // the listen path is taken off
	plain  bool // no request goes on that would leave HTTP
}

// Compile returns the stage that hands the requests of an API over to where a
// target leads, which begins with svc://.
func Compile(def *definition.API, target string) (*Stage, error) {
	if wrong := handover.Check(target); wrong != "" {
		return nil, fmt.Errorf("%s", wrong)
	}
	name, rest := handover.Split(target)
	base, err := match.CompileBase(rest)
	if err != nil {
		return nil, err
	}
	return &Stage{
		ref: RefOf(def, name), target: base, join: match.JoinOptions{DisableStripSlash: def.Proxy.DisableStripSlash},
		strip: def.Proxy.StripListenPath,
		// Operations in a tunnel would be past what governs those of GraphQL.
		plain: def.IsGraphQL(),
	}, nil
}

// ToVersion returns the stage that hands the requests of an API over to the one of
// a name, which is a version of it.
func ToVersion(def *definition.API, name string) (*Stage, error) {
	return Compile(def, handover.Scheme+name)
}

// RefOf returns what a name refers to in the definition of an API.
func RefOf(def *definition.API, name string) pipeline.Ref {
	return pipeline.Ref{Self: name == handover.Self, Name: name, Key: Key(def.OrgID, name)}
}

// Key is the name of an API of an organisation as Refs have it.
func Key(org, name string) string { return org + "\n" + handover.NameKey(name) }

// Name returns what the definition calls the other API.
func (s *Stage) Name() string { return s.ref.Name }

// Ref says which API that is.
func (s *Stage) Ref() *pipeline.Ref { return &s.ref }

// Handle hands the request over.
func (s *Stage) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	rest, query := ex.Call.Path, ex.Query()
	if s.strip {
		rest = ex.Rest
	}
	if ex.Outgoing.HasPath {
		rest = ex.Outgoing.Path
	}
	if ex.Outgoing.Root {
		rest, query = nil, nil
	}
	if s.plain {
		ex.Outgoing.AlsoDrop("Upgrade")
	}
	ex.Buf = s.target.Join(ex.Buf[:0], rest, query, s.join)
	return ex.Others.HandOver(ex, &s.ref, ex.Buf)
}

// Explain implements pipeline.Explainer.
func (s *Stage) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	switch r := ex.Rejection; {
	case ex.Behind != nil && (r == nil || ex.Relayed()):
		f.Said = "the request goes on to API " + ex.Behind.API.Definition.ID + ", whose rules hold for it as for any other"
	case r != nil:
		f.Fact("target", handover.Scheme+s.ref.Name, "", "definition")
		f.Fix = Fix(r)
	}
}

// Fix tells what would let a request go on that was not handed over.
func Fix(r *pipeline.Rejection) string {
	switch r.Reason {
	case pipeline.ReasonHandoverLoop:
		return fmt.Sprintf("a request goes on to another API at most %d times: see that none of these APIs leads back to another", pipeline.MaxHandovers)
	case pipeline.ReasonHandoverTarget:
		return "name an API of the same organisation that is active and served, by its id, or by its name if no other API has that"
	}
	return ""
}
