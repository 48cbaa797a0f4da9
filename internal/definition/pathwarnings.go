package definition

import (
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/definition/pattern"
)

// warnings lists the entries of the ignored list that open the whole API by accident, as
// paths are also matched with the listen path in front, and the entries of the black list
// that never count.
func (r *PathRules) warnings(listenPath string) (f object.Faults) {
	listens := strings.Trim(listenPath, "/")
	for _, rule := range r.Ignored {
		if one := strings.Trim(rule.Path, "/"); one != "" && one == listens {
			f.Addf(rule.At, "matches every path of the API, because paths are also matched with the listen path %s in front, so that no call needs a key; "+
				`write ^%s$ for this path alone, or / for all`, listenPath, rule.Path)
		}
	}
	if len(r.Ignored) == 0 || len(r.Black) == 0 {
		return f
	}
	open := newIgnoredPaths(r.Ignored)
	for i := range r.Black {
		if first := open.over(&r.Black[i].PathMatch); first != nil {
			f.Addf(r.Black[i].At, "never counts: %s (%s) is decided first, and lets all of these calls pass without a key; narrow that entry, or leave this one out", first.At, first.Path)
		}
	}
	return f
}

// ignoredPaths are the entries of the ignored list that take a path and all below it, by
// the path in lower case and without slashes at its ends.
type ignoredPaths map[string][]*PathRule

func newIgnoredPaths(rules []PathRule) ignoredPaths {
	open := make(ignoredPaths)
	for i := range rules {
		rule := &rules[i]
		parts, expression, err := pattern.Parse(rule.Path)
		if err != nil || expression || len(parts) != 1 || parts[0].Expr != "" {
			continue
		}
		path := foldPath(rule.Path)
		if !slices.ContainsFunc(open[path], func(other *PathRule) bool { return other.Method == rule.Method && other.IgnoreCase == rule.IgnoreCase }) {
			open[path] = append(open[path], rule)
		}
	}
	return open
}

func foldPath(path string) string { return strings.ToLower(strings.Trim(path, "/")) }

// over returns an entry that takes every call that m takes, or nil.
func (open ignoredPaths) over(m *PathMatch) *PathRule {
	if _, expression, err := pattern.Parse(m.Path); err != nil || expression {
		return nil
	}
	path := strings.Trim(m.Path, "/")
	for end := 0; end <= len(path); end++ {
		if end > 0 && end < len(path) && path[end] != '/' {
			continue
		}
		for _, rule := range open[strings.ToLower(path[:end])] {
			sameCase := !m.IgnoreCase && strings.Trim(rule.Path, "/") == path[:end]
			if (rule.Method == "" || rule.Method == m.Method) && (rule.IgnoreCase || sameCase) {
				return rule
			}
		}
	}
	return nil
}
