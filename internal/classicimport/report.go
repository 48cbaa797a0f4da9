package classicimport

import (
	"fmt"
	"strings"

	"github.com/sluicegate/sluice/internal/declarative"
	"github.com/sluicegate/sluice/internal/definition"
)

// refuseCollisions refuses objects that collide with others.
func (r *Report) refuseCollisions() {
	taken := make(map[string]*Entry)
	claim := func(e *Entry, what, message string) {
		if first, ok := taken[what]; ok {
			e.refuse("", fmt.Sprintf(message, first.From))
			e.object = nil
			return
		}
		taken[what] = e
	}
	for _, e := range r.Entries {
		if e.object == nil {
			continue
		}
		claim(e, string(e.Kind)+" "+e.Name, "another of this name is in %s; only one of them can be taken over")
		if api, err := definition.ParseAPI(e.body()); e.Kind == declarative.API && err == nil && api.IsActive() && !api.Internal {
			place := strings.ToLower(api.Domain) + strings.TrimRight(api.Proxy.ListenPath, "/")
			claim(e, "route "+place, "proxy.listen_path: is claimed in %s too; only one of them would be served")
		}
	}
	r.refuseDependents()
}

// body returns the converted JSON, empty if refused.
func (e *Entry) body() []byte {
	if e.object == nil {
		return nil
	}
	return e.object.Body
}

// refuseDependents refuses objects that depend on refused ones.
func (r *Report) refuseDependents() {
	refused := make(map[string]bool)
	for _, e := range r.Entries {
		if e.object == nil {
			refused[string(e.Kind)+" "+e.Name] = true
		}
	}
	for _, kind := range []declarative.Kind{declarative.Policy, declarative.Key} {
		for _, e := range r.Entries {
			if e.Kind != kind || e.object == nil {
				continue
			}
			e.without(refused)
			if e.object == nil {
				refused[string(e.Kind)+" "+e.Name] = true
			}
		}
	}
}

func (e *Entry) without(refused map[string]bool) {
	for _, id := range e.apis {
		if refused[string(declarative.API)+" "+id] {
			e.refuse(fmt.Sprintf("access_rights[%q]", id), "names an API that is refused")
		}
	}
	for _, id := range e.needs {
		if refused[string(declarative.Policy)+" "+id] {
			e.refuse("apply_policies", fmt.Sprintf("names the policy %q, which is refused", id))
		}
	}
	if len(e.Refused) > 0 {
		e.object = nil
	}
}

// Settle refuses policies and keys that refer to unknown APIs, and keys that refer to
// unknown policies.
func (r *Report) Settle(there *declarative.Set) {
	known := make(map[string]bool)
	for _, o := range there.Objects {
		known[string(o.Kind)+" "+o.Name] = true
	}
	for _, e := range r.Entries {
		if e.object != nil {
			known[string(e.Kind)+" "+e.Name] = true
		}
	}
	for _, e := range r.Entries {
		if e.object == nil {
			continue
		}
		for _, id := range e.apis {
			if !known[string(declarative.API)+" "+id] {
				e.refuse(fmt.Sprintf("access_rights[%q]", id), "names an API that is neither here nor on the server")
			}
		}
		for _, id := range e.needs {
			if !known[string(declarative.Policy)+" "+id] {
				e.refuse("apply_policies", fmt.Sprintf("names the policy %q, which is neither here nor on the server", id))
			}
		}
		if len(e.Refused) > 0 {
			e.object = nil
		}
	}
	r.refuseDependents()
	r.weigh()
}

// Set returns the converted objects.
func (r *Report) Set() (*declarative.Set, error) {
	set := new(declarative.Set)
	for _, e := range r.Entries {
		if e.object != nil {
			set.Objects = append(set.Objects, e.object)
		}
	}
	return set, set.Add()
}

// Refused returns the number of refused objects.
func (r *Report) Refused() (n int) {
	for _, e := range r.Entries {
		if e.object == nil {
			n++
		}
	}
	return n
}

// Text formats a report.
func (r *Report) Text() string {
	var b strings.Builder
	for _, e := range r.Entries {
		state := "taken over"
		if e.object == nil {
			state = "REFUSED"
		}
		fmt.Fprintf(&b, "%s %s: %s (%s)\n", e.Kind, e.Name, state, e.From)
		for _, part := range []struct {
			what  string
			lines []string
		}{{"refused", e.Refused}, {"mapped", e.Mapped}, {"unknown, kept", e.Warnings}} {
			for _, line := range part.lines {
				fmt.Fprintf(&b, "  %s: %s\n", part.what, line)
			}
		}
	}
	if r.Refused() > 0 {
		b.WriteString("--drop MEMBER leaves out a member that an object is refused for\n")
	}
	weight := ""
	for _, l := range r.Lost {
		if l.Weight != weight {
			weight = l.Weight
			fmt.Fprintf(&b, "lost, %s:\n", weight)
		}
		fmt.Fprintf(&b, "  %s %s: %s: %s\n", l.Kind, l.Name, l.Path, l.Message)
	}
	return b.String()
}
