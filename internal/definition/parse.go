package definition

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// How large what is read may be, in bytes, and how many elements it may have.
const (
	maxObject      = 8 << 20   // one object of any kind, a GraphQL schema included
	maxWithout     = 1 << 20   // an API definition without its GraphQL part; a policy; a session
	maxPolicyFile  = 64 << 20  // a file of policies
	maxBundle      = 512 << 20 // everything that a gateway serves
	maxAccess      = 10_000    // access entries of one key or policy
	maxAllowedURLs = 1_000     // of one access entry
	maxPolicies    = 100       // on one key
	maxVersions    = 1_000     // of one API
	maxTags        = 1_000
	maxText        = 1_024 // names, aliases, tags
	maxID          = 128
)

// ParseAPI reads and checks one API definition. The error is a *Problems with
// all problems. The definition is returned with it as far as it could be read, so
// that the caller can identify it; never serve or store that one.
func ParseAPI(data []byte) (*API, error) {
	a := new(API)
	err := parse(data, maxObject, a, func() error {
		a.setDefaults()
		return a.Validate()
	})
	a.mayRefer = MayReferToSecrets(data)
	if err == nil && len(data) > maxWithout {
		err = checkRest(data)
	}
	return a, err
}

// checkRest bounds what a definition holds beside its GraphQL part, which may
// have a large schema.
func checkRest(data []byte) error {
	n := len(data) - len(parts(bytes.TrimSpace(data))["graphql"])
	if n > maxWithout {
		return &Problems{{Message: object.SizeMessage(n, maxWithout) + " beside its graphql part"}}
	}
	return nil
}

// ParsePolicy reads and checks one policy. The error is *Problems; the policy
// beside it is as far as it could be read.
func ParsePolicy(data []byte) (*Policy, error) {
	p := new(Policy)
	return p, parse(data, maxWithout, p, p.Validate)
}

// ParseSession reads and checks one session. The error is *Problems; the session
// beside it is as far as it could be read.
func ParseSession(data []byte) (*Session, error) {
	s := new(Session)
	return s, parse(data, maxWithout, s, s.Validate)
}

// parse reads data, at most most bytes, into *into, and checks it with validate.
func parse[T any](data []byte, most int, into *T, validate func() error) error {
	if fault := object.Check(data, most); fault != nil {
		return asProblems(*fault)
	}
	unread, ok := asProblems(object.Decode(data, into)...).(*Problems)
	if !ok {
		return validate()
	}
	// What could not be read has its zero value, of which validate need not
	// complain as well.
	all := *unread
	if invalid, ok := validate().(*Problems); ok {
		for _, one := range *invalid {
			if !unread.cover(one.Path) {
				all.add(one)
			}
		}
	}
	return &all
}

// cover reports whether there is a problem at path or above it.
func (p *Problems) cover(path string) bool {
	for _, one := range *p {
		rest, below := strings.CutPrefix(path, one.Path)
		if below && (rest == "" || one.Path == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// ParsePolicies reads and checks a file of policies: an object from id to
// policy. It returns the policies that are right, ordered by id, also beside an
// error; the error is *Problems and holds those of all others.
func ParsePolicies(data []byte) ([]*Policy, error) {
	if fault := object.Check(data, maxPolicyFile); fault != nil {
		return nil, asProblems(*fault)
	}
	var byID map[string]json.RawMessage
	if err := json.Unmarshal(data, &byID); err != nil || byID == nil {
		return nil, &Problems{{Message: `must be an object from policy id to policy, such as {"gold": {"rate": 10, "per": 1}}`}}
	}
	var policies []*Policy
	var problems Problems
	for _, id := range object.SortedKeys(byID) {
		p, err := ParsePolicy(byID[id])
		switch {
		case err != nil:
			problems.join(object.Entry("", id), err)
		case p.ID != "" && p.ID != id:
			problems.addf(object.Entry("", id)+".id", "must be %q, the name of the entry, or be left out", id)
		case !isID(id):
			problems.addf(object.Entry("", id), "%s", idMessage)
		default:
			if p.ID == "" { // else the id would be there twice
				p.ID = id
			}
			policies = append(policies, p)
		}
	}
	return policies, problems.err()
}

// ParseBundle reads a bundle. An API or policy of it that is wrong is listed in
// Skipped and does not keep the others from being served; the error says why
// nothing could be read.
func ParseBundle(data []byte) (*Bundle, error) {
	var raw struct {
		Bundle
		APIs     []json.RawMessage `json:"apis"`
		Policies []json.RawMessage `json:"policies"`
	}
	if len(data) > maxBundle {
		return nil, fmt.Errorf("reading a bundle: %s", object.SizeMessage(len(data), maxBundle))
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("reading a bundle: %w", err)
	}
	b := &raw.Bundle
	b.APIs, b.Policies = make([]*API, 0, len(raw.APIs)), make([]*Policy, 0, len(raw.Policies))
	for i, one := range raw.APIs {
		a, err := ParseAPI(one)
		if err != nil {
			b.Skipped = append(b.Skipped, SkippedAPI(object.Item("apis", i), a, err))
			continue
		}
		b.APIs = append(b.APIs, a)
	}
	for i, one := range raw.Policies {
		p, err := ParsePolicy(one)
		if err != nil {
			source := object.Item("policies", i) + " " + p.Key()
			b.Skipped = append(b.Skipped, Skipped{Source: source, Reason: err.Error()})
			continue
		}
		b.Policies = append(b.Policies, p)
	}
	return b, nil
}

// join adds the problems of a part of the object, which stands at path.
func (p *Problems) join(path string, err error) {
	more, ok := err.(*Problems)
	if !ok {
		return
	}
	for _, one := range *more {
		switch {
		case one.Path == "":
			one.Path = path
		case path != "" && one.Path[0] == '[':
			one.Path = path + one.Path
		default:
			one.Path = object.Member(path, one.Path)
		}
		p.add(one)
	}
}

// unmarshal replaces *into, a struct of this package, by what data says.
func unmarshal[T any](data []byte, into *T) error {
	if fault := object.Check(data, maxObject); fault != nil {
		return asProblems(*fault)
	}
	return asProblems(object.Decode(data, into)...)
}
