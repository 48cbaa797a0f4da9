package schema

// names finds rows by name: open addressing over indices.
type names struct{ slots []uint32 }
