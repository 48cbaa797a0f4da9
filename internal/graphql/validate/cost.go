package validate

// Cost is what an operation can cost at most: one for each field but
// __typename, times the sizes of the lists that it is in.
type Cost struct {
	Fixed uint64 // the cost, unless the size of a list depends on a variable

	steps []costStep // else; in document order
}

// A costStep is a list whose size is a variable, or fields that are in none.
type costStep struct {
	fields   uint64 // cost of the fields at this level that depend on no variable
	variable uint16 // index in Facts.Variables of the size of the list that the next steps are in
	assumed  uint32 // the size when the variable is absent or null
	steps    uint16 // how many steps are in the list; 0: variable is not used
}
