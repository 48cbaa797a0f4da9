package validate

import (
	"strings"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// Defaults of Options.
const (
	DefaultMaxErrors   = 20
	DefaultMaxExpanded = 20_000
	DefaultListSize    = 10
)

// Options control how documents are checked and measured.
type Options struct {
	// Suggestions adds similar names to error messages.
	Suggestions bool
	// Hide removes from error messages what the client did not write: names of the
	// schema, expected types, suggestions.
	Hide bool
	// MaxErrors bounds the reported errors; one more entry reports that there are more.
	MaxErrors int

	// MaxExpanded bounds the fields of an operation, fragments counted where they
	// are spread.
	MaxExpanded int
	// ListSize is the assumed length of a list without a size argument.
	ListSize int
	// SizeArguments are the arguments that bound the length of a list; nil for
	// first, last and limit.
	SizeArguments []string
}

// sizeArguments are the arguments that sizes are in by default.
var sizeArguments = []string{"first", "last", "limit"}

// withDefaults returns the options with what holds where nothing is set.
func (o Options) withDefaults() Options {
	if o.MaxErrors <= 0 {
		o.MaxErrors = DefaultMaxErrors
	}
	if o.MaxExpanded <= 0 {
		o.MaxExpanded = DefaultMaxExpanded
	}
	if o.ListSize <= 0 {
		o.ListSize = DefaultListSize
	}
	if o.Hide {
		o.Suggestions = false
	}
	return o
}

// Names for what the tables of a schema do not hold.
const (
	typenameField = schema.NoField - 1              // __typename of any type
	noRef         = schema.TypeRef(schema.NoType)   // an unknown type
	maxNesting    = 4000                            // bounds recursion
	maxSteps      = 2_000_000                       // of work that does not depend on the size of the document alone
	tooComplex    = "The document is too complex: " // begins refusals that no rule of GraphQL requires
)

// A Validator checks documents and gathers facts about them. It reuses its
// allocations and must not be used concurrently. The zero value is ready for use.
type Validator struct {
	s   *schema.Schema
	doc *syntax.Document
	o   Options

	names    nameIndex
	problems []problem
	over     bool // there are more problems than are reported
	steps    int  // of work left
	effort   int  // so far, never reset

	resolved  []uint32 // by selection: FieldID, TypeID of an inline fragment, or index of the fragment that is spread
	fragments marks    // by name: the fragment with the name
	defs      []definition
	around    definition // what is being walked
	usages    []usage
	varTypes  []schema.TypeRef // by variable definition
	quiet     int              // values around that are at fault as a whole
	inputs    marks            // uses of directives of the schema, or names, that one parent has
	metas     []uint32         // the selections of __schema and __type

	typename schema.Field // the row that __typename would have
	nothing  schema.Field // the row of no field

	graph    graph
	vars     variableMarks
	merge    merger
	finder   nameFinder
	gatherer gatherer
}

// A definition is what is gathered about an operation or a fragment, those of
// fragments after those of all operations.
type definition struct {
	usages  syntax.Range // in Validator.usages
	spreads syntax.Range // in graph.spreads
	fields  uint64       // in it, without what it spreads
}

// Check checks a document against all rules. It returns the errors in the order of
// their locations: at most Options.MaxErrors and a last entry if there are more;
// nil if the document is valid.
//
// Time and memory are bounded for every document within the limits of parsing: a
// document that would take more is refused as too complex.
func (v *Validator) Check(s *schema.Schema, doc *syntax.Document, o Options) []*syntax.Error {
	v.begin(s, doc, o)
	if v.executable() {
		v.rules()
	}
	v.effort += effortPerToken*doc.Tokens + (maxSteps-v.steps)/stepsPerEffort + v.merge.comparisons()
	return v.errors()
}

// rules checks an executable document against each rule.
func (v *Validator) rules() {
	v.nameDefinitions()
	v.walkDefinitions()
	if !v.over {
		v.linkFragments()
		v.checkVariables()
		v.checkSubscriptions()
	}
	// The following rules expand fragments, which terminates only without cycles.
	if !v.over && !v.graph.cyclic && v.checkExpansion() {
		v.checkIntrospection()
		v.checkMerging()
	}
}

// The units of effort. One takes about 25 ns.
const (
	stepsPerEffort = 8 // of Validator.steps
	effortPerToken = 4
)

// Effort returns the work for all documents so far, in units of about 25 ns. It
// bounds the work for several documents of one request.
func (v *Validator) Effort() int { return v.effort }

// checkMerging reports conflicting fields with the same response name.
func (v *Validator) checkMerging() {
	conflicts, ok := v.merge.conflicts(v)
	for _, c := range conflicts {
		v.report(c.message, c.places...)
	}
	if !ok && len(conflicts) == 0 {
		v.refuse("it has too many fields of the same name to compare")
	}
}

// begin forgets the last document.
func (v *Validator) begin(s *schema.Schema, doc *syntax.Document, o Options) {
	if v.s != s {
		v.typename = schema.Field{Name: schema.Typename, Owner: schema.NoType, Type: stringRef(s)}
		v.nothing.Type = noRef
	}
	v.s, v.doc, v.o = s, doc, o.withDefaults()
	v.names.reset(doc)
	v.problems, v.over, v.steps, v.quiet = v.problems[:0], false, maxSteps, 0
	v.resolved = sized(v.resolved, len(doc.Selections))
	v.defs = sized(v.defs, len(doc.Operations)+len(doc.Fragments))
	v.varTypes = sized(v.varTypes, len(doc.Variables))
	v.usages, v.metas = v.usages[:0], v.metas[:0]
	v.fragments.clear()
	v.finder = nameFinder{}
	v.graph.reset(len(doc.Fragments))
	v.merge.reset(len(doc.Selections))
}

// stringRef returns String!.
func stringRef(s *schema.Schema) schema.TypeRef {
	t, _ := s.TypeNamed([]byte("String"))
	ref, _ := schema.Named(t).NonNull()
	return ref
}

// spend subtracts steps of work and reports whether enough were left.
func (v *Validator) spend(n int) bool {
	v.steps -= n
	if v.steps < 0 && !v.over {
		v.refuse("its fragments and variables are used too often")
	}
	return v.steps >= 0
}

// TooComplex reports whether an error of Check is about the cost of the document and
// not about a rule of GraphQL.
func TooComplex(e *syntax.Error) bool { return strings.HasPrefix(e.Message, tooComplex) }

// refuse reports an error and ends the check.
func (v *Validator) refuse(why string) {
	v.report(tooComplex + why + ".")
	v.over = true
}

// executable reports type definitions. If there are any, no other rule is checked.
func (v *Validator) executable() bool {
	for _, d := range v.doc.Definitions {
		if d.Kind != syntax.TypeSystemDefinition {
			continue
		}
		def := &v.doc.TypeDefs[d.Index]
		name := "schema"
		if def.Kind != syntax.SchemaDef {
			name = v.quoted(def.Name)
		}
		v.report("The "+name+" definition is not executable.", def.Start)
	}
	return len(v.problems) == 0
}
