// Package layers holds no code, only tests that keep the code in order.
//
// layers_test.go has the rules about imports: which packages may not import which,
// by path, and which of them a third-party module belongs to.
//
// style_test.go has the limits that readers need: how long a function may be, how
// deep its blocks, how many parameters it takes; that packages and exported
// identifiers are documented; that nothing hides in init or in variables that
// change. No count of lines decides which package code lives in.
//
// Both read the source text only, under every build tag. Test files may import what
// they like, and generated code is not measured.
package layers
