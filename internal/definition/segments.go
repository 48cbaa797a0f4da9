package definition

import (
	"net/url"
	"slices"
	"strings"
)

// The tags of a definition are segments of gateways: a gateway serves the APIs without
// tags, and those that have one of its own (behaviour O).

// ServedBy reports whether a gateway with tags serves the API.
func (a *API) ServedBy(tags []string) bool { return AnyTag(a.Tags, tags) }

// AnyTag reports whether a gateway with tags serves an API that has others, or none.
func AnyTag(ofAPI, tags []string) bool {
	return len(ofAPI) == 0 || slices.ContainsFunc(ofAPI, func(tag string) bool { return slices.Contains(tags, tag) })
}

// KeepServed moves the APIs that a gateway with tags does not serve to Elsewhere. With nil
// there are no segments, and all stay.
func (b *Bundle) KeepServed(tags []string) {
	if tags == nil || !slices.ContainsFunc(b.APIs, func(a *API) bool { return !a.ServedBy(tags) }) {
		return
	}
	served := make([]*API, 0, len(b.APIs))
	for _, a := range b.APIs {
		if a.ServedBy(tags) {
			served = append(served, a)
		} else {
			b.Elsewhere = append(b.Elsewhere, a)
		}
	}
	b.APIs = served
	b.ConfirmedEmpty = b.ConfirmedEmpty || len(served) == 0
}

// JoinTags writes tags as one text that SplitTags reads, in order and each once.
func JoinTags(tags []string) string {
	escaped := make([]string, len(tags))
	for i, tag := range slices.Compact(slices.Sorted(slices.Values(tags))) {
		escaped[i] = url.QueryEscape(tag)
	}
	return strings.Join(slices.DeleteFunc(escaped, func(tag string) bool { return tag == "" }), ",")
}

// SplitTags reads what JoinTags wrote. Parts that it cannot have written are left out.
func SplitTags(text string) []string {
	tags := []string{}
	for part := range strings.SplitSeq(text, ",") {
		if tag, err := url.QueryUnescape(part); err == nil && tag != "" {
			tags = append(tags, tag)
		}
	}
	return tags
}
