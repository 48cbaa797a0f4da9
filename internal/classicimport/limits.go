package classicimport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A group is a set of related limits. It is set if the first of them is.
type group struct {
	name    string
	members []string
}

// groups are inherited one by one here, and all together in the classic format.
var groups = []group{
	{"rate", []string{"rate", "per"}},
	{"throttle", []string{"throttle_interval", "throttle_retry_limit"}},
	{"quota", []string{"quota_max", "quota_renewal_rate"}},
	{"depth", []string{"max_query_depth"}},
}

// unlimited is an explicit "no limit"; a missing number is inherited.
const unlimited = json.Number("-1")

// writeOut completes the limits of entries. In the classic format one limit in an entry
// replaces all limits of the key or policy for the API; here each group is inherited
// separately unless it is set.
func (e *Entry) writeOut(tree map[string]any) {
	e.limits(tree, func(id string, access, limit map[string]any) {
		var out []string
		for _, g := range groups {
			if g.set(limit) || !g.set(tree) {
				continue
			}
			limit[g.members[0]] = unlimited
			out = append(out, g.name)
		}
		if len(out) > 0 {
			e.note("access_rights[%q].limit: %s written as unlimited, as the entry had none of its own and took the place of all", id, strings.Join(out, ", "))
		}
	})
}

// leaveOut removes the limits of entries.
func (e *Entry) leaveOut(tree map[string]any, why string) {
	e.limits(tree, func(id string, access, _ map[string]any) {
		delete(access, "limit")
		e.note(why, id)
	})
}

// limits calls do for each entry with limits.
func (e *Entry) limits(tree map[string]any, do func(id string, access, limit map[string]any)) {
	rights, _ := tree["access_rights"].(map[string]any)
	for _, id := range slices.Sorted(maps.Keys(rights)) {
		access, _ := rights[id].(map[string]any)
		limit, _ := access["limit"].(map[string]any)
		for _, name := range []string{"quota_renews", "quota_remaining"} {
			delete(limit, name)
		}
		if slices.ContainsFunc(groups, func(g group) bool { return g.set(limit) }) {
			do(id, access, limit)
		}
	}
}

func (g *group) set(limits map[string]any) bool {
	return slices.ContainsFunc(g.members, func(name string) bool {
		n, ok := limits[name].(json.Number)
		return ok && number(n) != 0
	})
}

func number(n json.Number) float64 {
	f, err := n.Float64()
	if err != nil { // larger than any limit
		return 1
	}
	return f
}

// listed converts an array of access rights to a map.
func listed(tree map[string]any) {
	list, _ := tree["access_rights_array"].([]any)
	delete(tree, "access_rights_array")
	if rights, _ := tree["access_rights"].(map[string]any); len(rights) > 0 || len(list) == 0 {
		return
	}
	rights := make(map[string]any, len(list))
	for _, item := range list {
		access, _ := item.(map[string]any)
		if id, ok := access["api_id"].(string); ok {
			rights[id] = access
		}
	}
	tree["access_rights"] = rights
}

// decode decodes an object and keeps numbers as written.
func decode(text []byte) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var tree map[string]any
	if err := dec.Decode(&tree); err != nil {
		return nil, fmt.Errorf("is no JSON object: %w", err)
	}
	if tree == nil {
		return nil, errors.New("is no JSON object: it is null")
	}
	return tree, nil
}

func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
