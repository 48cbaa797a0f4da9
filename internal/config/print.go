package config

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/secret"
)

// YAML writes the effective configuration as a file that Load accepts, with
// secrets as ***, and the origin of each value as a comment.
func (c *Config) YAML(origins Origins) string {
	var b strings.Builder
	var open []string
	for _, f := range fieldsOf(c) {
		path := strings.Split(f.key, ".")
		open = openGroups(&b, open, path[:len(path)-1])
		indent := strings.Repeat("  ", len(open))
		fmt.Fprintf(&b, "%s%s: %s # %s\n", indent, path[len(path)-1], f.yaml(), origins[f.key])
	}
	return b.String()
}

// openGroups writes the headings of the groups that the next setting opens.
func openGroups(b *strings.Builder, open, next []string) []string {
	same := 0
	for same < min(len(open), len(next)) && open[same] == next[same] {
		same++
	}
	for i := same; i < len(next); i++ {
		fmt.Fprintf(b, "%s%s:\n", strings.Repeat("  ", i), next[i])
	}
	return next
}

// yaml writes the value as YAML of one line.
func (f field) yaml() string {
	switch v := f.value.Interface().(type) {
	case string:
		return strconv.Quote(v)
	case secret.Value:
		return strconv.Quote(f.String())
	case []string:
		return flowList(v)
	case []netip.Prefix:
		return flowList(splitList(joinPrefixes(v)))
	case time.Duration, Bytes:
		return f.String()
	default:
		return formatPlain(v)
	}
}

func flowList(items []string) string {
	quoted := make([]string, len(items))
	for i, item := range items {
		quoted[i] = strconv.Quote(item)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
