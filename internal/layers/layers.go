// Package layers holds no code, only tests that keep the house in order.
//
// layers_test.go has the table of rooms: for each package its one job, and what
// it may import of ours and of others. An import that is not in the table fails,
// and so does a package without a row. Whoever adds a package adds its row;
// whoever widens a row says why in the commit.
//
// style_test.go has the budgets: how long a function, a file and a package may
// be, how deep a block, how many parameters; that packages and exported
// identifiers are documented; that nothing hides in init or in variables that
// change. An exception is one line there, with its reason.
//
// Both look at the source text alone, every build tag included. Test files may
// import and do what they like, and generated code is not measured.
package layers
