package classicimport

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicegate/sluice/internal/definition"
)

// A Loss is something in an object that has no effect once it is imported.
type Loss struct {
	Weight  string `json:"weight"` // accessLoss, routeLoss or minorLoss
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Path    string `json:"path"`
	Message string `json:"message"`
}

// The weights of losses, the greatest first.
const (
	accessLoss = "who may call"
	routeLoss  = "where calls go"
	minorLoss  = "other"
)

var weights = []string{accessLoss, routeLoss, minorLoss}

func (e *Entry) lose(weight, path, message string) {
	e.lost = append(e.lost, Loss{Weight: weight, Kind: string(e.Kind), Name: e.Name, Path: path, Message: message})
}

// weigh collects the losses of all objects that are not refused, the greatest first.
func (r *Report) weigh() {
	r.Lost = nil
	for _, e := range r.Entries {
		if e.object != nil {
			r.Lost = append(r.Lost, e.lost...)
		}
	}
	slices.SortStableFunc(r.Lost, func(a, b Loss) int {
		return cmp.Compare(slices.Index(weights, a.Weight), slices.Index(weights, b.Weight))
	})
}

// A member is the path of a member, in parts. The part * stands for all names and
// positions.
type member []string

// memberOf parses a path such as proxy.transport, versions["v1"].paths and versions.*.paths.
func memberOf(path string) member {
	var parts member
	for path != "" {
		if rest, ok := strings.CutPrefix(path, "["); ok {
			part, err := strconv.QuotedPrefix(rest)
			if name, _ := strconv.Unquote(part); err == nil {
				parts, path = append(parts, name), strings.TrimPrefix(rest[len(part):], "]")
			} else {
				part, path, _ = strings.Cut(rest, "]")
				parts = append(parts, part)
			}
		} else if end := strings.IndexAny(path, ".["); end < 0 {
			return append(parts, path)
		} else {
			parts, path = append(parts, path[:end]), path[end:]
		}
		path = strings.TrimPrefix(path, ".")
	}
	return parts
}

// covers reports whether a path is that of the member or below it.
func (m member) covers(path member) bool {
	if len(m) == 0 || len(m) > len(path) {
		return false
	}
	for i, part := range m {
		if part != "*" && part != path[i] {
			return false
		}
	}
	return true
}

// remove removes a member from a tree, and returns the tree without it.
func remove(node any, path member) (without any, removed bool) {
	switch v := node.(type) {
	case map[string]any:
		child, there := v[path[0]]
		if !there {
			return node, false
		}
		if len(path) == 1 {
			delete(v, path[0])
			return v, true
		}
		v[path[0]], removed = remove(child, path[1:])
		return v, removed
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(v) {
			return node, false
		}
		if len(path) == 1 {
			return slices.Delete(v, i, i+1), true
		}
		v[i], removed = remove(v[i], path[1:])
		return v, removed
	}
	return node, false
}

// drop removes the first member with a problem that one of the drops covers, and marks
// the drop as used.
func (e *Entry) drop(tree map[string]any, problems definition.Problems, drops *Drops) bool {
	for _, p := range problems {
		path := memberOf(p.Path)
		for i, m := range drops.members {
			if !m.covers(path) {
				continue
			}
			if _, removed := remove(tree, path[:len(m)]); removed {
				drops.used[i] = true
				e.lose(weightOf(p), shown(path[:len(m)]), lossMessage(p, tree))
				return true
			}
		}
	}
	return false
}

// weightOf returns the weight of the loss of a member with a problem.
func weightOf(p definition.Problem) string {
	switch {
	case p.Weight == definition.AccessWeight || p.Feature == "" && guards(memberOf(p.Path)):
		return accessLoss
	case p.Weight == definition.RouteWeight:
		return routeLoss
	}
	return minorLoss
}

// guarding are the parts of paths of members that decide who may call.
var guarding = []string{
	"auth", "auth_configs", "basic_auth", "client_certificates", "allowed_ips", "blacklisted_ips", "allowed_urls", "access_rights",
	"black_list", "white_list", "ignored", "expires", "CORS", "apply_policies", "mtls_static_certificate_bindings",
}

func guards(path member) bool {
	for _, part := range path {
		if slices.Contains(guarding, part) || strings.HasPrefix(part, "jwt_") || strings.HasPrefix(part, "use_") || strings.HasPrefix(part, "enable_") {
			return true
		}
	}
	return false
}

func lossMessage(p definition.Problem, tree map[string]any) string {
	message := "is left out"
	if p.Feature != "" {
		message += ": " + p.Feature
	}
	if p.Weight == definition.AccessWeight && tree["use_keyless"] == true {
		message += "; callers need no credential"
	}
	return message
}

// shown returns a path as it is shown.
func shown(path member) string {
	var text strings.Builder
	for _, part := range path {
		switch _, err := strconv.Atoi(part); {
		case err == nil:
			text.WriteString("[" + part + "]")
		case strings.ContainsAny(part, `.[" `):
			text.WriteString(fmt.Sprintf("[%q]", part))
		default:
			text.WriteString("." + part)
		}
	}
	return strings.TrimPrefix(text.String(), ".")
}

// Drops are the members to leave out of objects that are refused for them.
type Drops struct {
	paths   []string
	members []member
	used    []bool
}

// NewDrops returns drops of paths. In a path, * stands for all names and positions.
func NewDrops(paths []string) *Drops {
	d := &Drops{paths: paths, used: make([]bool, len(paths))}
	for _, path := range paths {
		d.members = append(d.members, memberOf(path))
	}
	return d
}

// Unused returns the paths for which no object would have been refused.
func (d *Drops) Unused() (unused []string) {
	for i, used := range d.used {
		if !used {
			unused = append(unused, d.paths[i])
		}
	}
	return unused
}
