package rules

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/rights"
)

// Digest names the rules that Compile would make a table of: equal digests give
// equal tables for one schema, so that keys with the same rights can share one.
// The order of what lists hold does not matter.
func Digest(may *rights.Access, o Options) [sha256.Size]byte {
	w := make(writer, 0, 256)
	l := limitsOf(may, o.Limits)
	for _, n := range [...]int64{int64(o.DepthBase), int64(o.Limits.Depth), int64(l.Depth), int64(l.Aliases), int64(l.RootFields), int64(l.Directives), int64(l.Tokens), l.Cost} {
		w.number(max(n, 0))
	}
	if may == nil {
		w.flags(true, o.TrustedOnly)
		return sha256.Sum256(w)
	}
	allows := len(may.AllowedTypes) > 0
	w.flags(false, o.TrustedOnly || may.TrustedDocumentsOnly.Value, o.HidesSchema || may.DisableIntrospection.Value, allows)
	if allows {
		w.types(may.AllowedTypes)
	} else {
		w.types(may.RestrictedTypes)
	}
	w.number(int64(len(may.FieldAccess)))
	for _, f := range sorted(may.FieldAccess, func(f rights.Value[definition.FieldAccess]) string { return f.Value.TypeName + "." + f.Value.FieldName }) {
		w.text(f.Value.TypeName)
		w.text(f.Value.FieldName)
		w.number(int64(f.Value.Limits.MaxQueryDepth))
	}
	return sha256.Sum256(w)
}

// A writer puts values behind each other so that no two sequences look alike.
type writer []byte

func (w *writer) number(n int64) { *w = binary.AppendVarint(*w, n) }

func (w *writer) text(s string) {
	w.number(int64(len(s)))
	*w = append(*w, s...)
}

func (w *writer) flags(all ...bool) {
	for _, on := range all {
		n := byte(0)
		if on {
			n = 1
		}
		*w = append(*w, n)
	}
}

func (w *writer) types(types []rights.Item[definition.TypeFields]) {
	w.number(int64(len(types)))
	for _, t := range sorted(types, func(t rights.Item[definition.TypeFields]) string { return t.Value.Name }) {
		w.text(t.Value.Name)
		w.number(int64(len(t.Value.Fields)))
		for _, f := range sorted(t.Value.Fields, func(f string) string { return f }) {
			w.text(f)
		}
	}
}

// sorted returns elements in the order of a text, all itself when it is in that
// order already. all stays as it is.
func sorted[T any](all []T, text func(T) string) []T {
	compare := func(a, b T) int { return cmp.Compare(text(a), text(b)) }
	if slices.IsSortedFunc(all, compare) {
		return all
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, compare)
	return all
}
