// Package internalcall compiles the stages by which one API calls another of the same
// gateway: for a target that begins with svc://, and for a version that is another
// API.
//
// The call runs in the process, through the stages of the other API, which requires
// credentials and counts as if a client had called it: an internal call grants
// nothing. It sees the request as the first API changed it.
package internalcall

import (
	"fmt"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// A Stage calls another API.
type Stage struct {
	ref    pipeline.APIRef
	target *match.Target
	join   match.JoinOptions
	strip  bool // the listen path is stripped
	plain  bool // requests to leave HTTP are not forwarded
}

// Compile returns the stage that calls the API of a target, which begins with svc://.
func Compile(def *definition.API, target string) (*Stage, error) {
	if wrong := definition.CheckInternal(target); wrong != "" {
		return nil, fmt.Errorf("%s", wrong)
	}
	name, rest := definition.SplitInternal(target)
	base, err := match.CompileBase(rest)
	if err != nil {
		return nil, err
	}
	return &Stage{
		ref: RefOf(def, name), target: base, join: match.JoinOptions{DisableStripSlash: def.Proxy.DisableStripSlash},
		strip: def.Proxy.StripListenPath,
		// GraphQL operations in a tunnel could not be governed.
		plain: def.IsGraphQL(),
	}, nil
}

// ToVersion returns the stage that calls the API that is a version of def, by its
// name.
func ToVersion(def *definition.API, name string) (*Stage, error) {
	return Compile(def, definition.InternalScheme+name)
}

// RefOf returns the reference to an API that a definition names.
func RefOf(def *definition.API, name string) pipeline.APIRef {
	return pipeline.APIRef{Self: name == definition.Self, Name: name, Key: Key(def.OrgID, name)}
}

// Key returns the key of an API's name in its organisation; see pipeline.APIRef.
func Key(org, name string) string { return org + "\n" + definition.NameKey(name) }

// Name returns the name of the other API in the definition.
func (s *Stage) Name() string { return s.ref.Name }

// Ref returns the reference to the other API.
func (s *Stage) Ref() *pipeline.APIRef { return &s.ref }

// Handle implements pipeline.Stage.
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
	return ex.Internal.Call(ex, &s.ref, ex.Buf)
}

// Explain implements pipeline.Explainer.
func (s *Stage) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	switch r := ex.Rejection; {
	case ex.Child != nil && (r == nil || ex.RefusedByChild()):
		f.Said = "the request goes on to API " + ex.Child.API.Definition.ID + ", whose rules hold for it as for any other"
	case r != nil:
		f.Fact("target", definition.InternalScheme+s.ref.Name, "", "definition")
		f.Fix = Fix(r)
	}
}

// Fix returns the hint for a refused internal call.
func Fix(r *pipeline.Rejection) string {
	switch r.Reason {
	case pipeline.ReasonInternalLoop:
		return fmt.Sprintf("a request goes on to another API at most %d times: see that none of these APIs leads back to another", pipeline.MaxInternalCalls)
	case pipeline.ReasonInternalTarget:
		return "name an API of the same organisation that is active and served, by its id, or by its name if no other API has that"
	}
	return ""
}
