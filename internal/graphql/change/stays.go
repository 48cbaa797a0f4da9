package change

import "github.com/sluicegate/sluice/internal/graphql/schema"

// outputStays reports whether every value of the type that a field has now is one
// of the type that it had: clients may lose nulls, and get none that they did
// not expect.
func (c *comparison) outputStays(was, is schema.TypeRef) bool {
	switch {
	case was.IsNonNull():
		return is.IsNonNull() && c.outputStays(was.Inner(), is.Inner())
	case is.IsNonNull():
		return c.outputStays(was, is.Inner())
	case was.IsList():
		return is.IsList() && c.outputStays(was.Inner(), is.Inner())
	}
	return is.IsNamed() && c.sameName(was, is)
}

// inputStays reports whether every value that could be given before can be now.
func (c *comparison) inputStays(was, is schema.TypeRef) bool {
	switch {
	case was.IsNonNull():
		return c.inputStays(was.Inner(), is.Nullable())
	case was.IsList():
		return is.IsList() && c.inputStays(was.Inner(), is.Inner())
	}
	return is.IsNamed() && c.sameName(was, is)
}

func (c *comparison) sameName(was, is schema.TypeRef) bool {
	return c.old.Types[was.Type()].Name == c.new.Types[is.Type()].Name
}
