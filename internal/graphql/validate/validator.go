package validate

import (
	"strings"

	"github.com/sluicegate/sluice/internal/graphql/merging"
	"github.com/sluicegate/sluice/internal/graphql/names"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/suggest"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// What holds where Options have zero.
const (
	DefaultMaxErrors   = 20
	DefaultMaxExpanded = 20_000
	DefaultListSize    = 10
)

// Options say how documents are checked and measured.
type Options struct {
	// Suggestions adds to error texts which names may have been meant.
	Suggestions bool
	// Hide leaves out of error texts all that the client did not write itself:
	// names of the schema, what is expected, suggestions.
	Hide bool
	// MaxErrors bounds what is reported; one more entry says that there is more.
	MaxErrors int

	// MaxExpanded bounds the fields of an operation, fragments counted where they
	// are spread.
	MaxExpanded int
	// ListSize is how long a list is assumed to be when nothing tells it.
	ListSize int
	// SizeArguments are the arguments that tell how long a list can be; nil for
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
	noRef         = schema.TypeRef(schema.NoType)   // a type that is not known
	maxNesting    = 4000                            // of what recursion goes down into
	maxSteps      = 2_000_000                       // of work that documents of one size can differ in
	tooComplex    = "The document is too complex: " // how refusals begin that no rule asks for
)

// A Validator checks documents and gathers facts about them. It keeps what it
// has allocated for the next document, and serves one goroutine at a time. The
// zero value is ready.
type Validator struct {
	s   *schema.Schema
	doc *syntax.Document
	o   Options

	names    names.Names
	problems []problem
	over     bool // there are more problems than are reported
	steps    int  // of work left
	effort   int  // so far, never reset

	resolved  []uint32    // by selection: FieldID, TypeID of an inline fragment, or index of the fragment that is spread
	fragments names.Marks // by name: the fragment that the name stands for
	defs      []definition
	around    definition // what is being walked
	usages    []usage
	varTypes  []schema.TypeRef // by variable definition
	quiet     int              // values around that are at fault as a whole
	inputs    names.Marks      // uses of directives of the schema, or names, that one parent has
	metas     []uint32         // the selections of __schema and __type

	typename schema.Field // the row that __typename would have
	nothing  schema.Field // the row of no field

	graph    graph
	vars     variableMarks
	merge    merging.Merger
	finder   suggest.Finder
	gatherer gatherer
}

// A definition is what is gathered about an operation or a fragment, those of
// fragments after those of all operations.
type definition struct {
	usages  syntax.Range // in Validator.usages
	spreads syntax.Range // in graph.spreads
	fields  uint64       // in it, without what it spreads
}

// Check holds a document against all rules. It returns what is wrong in the
// order of places, at most Options.MaxErrors and a last entry when there is
// more, and nil when the document is valid.
//
// Its time and memory are bounded for any document within the limits of parsing:
// what would take more is refused as too complex.
func (v *Validator) Check(s *schema.Schema, doc *syntax.Document, o Options) []*syntax.Error {
	v.begin(s, doc, o)
	if v.executable() {
		v.rules()
	}
	v.effort += effortPerToken*doc.Tokens + (maxSteps-v.steps)/stepsPerEffort + v.merge.Comparisons()
	return v.errors()
}

// rules holds an executable document against each rule.
func (v *Validator) rules() {
	v.nameDefinitions()
	v.walkDefinitions()
	if !v.over {
		v.linkFragments()
		v.checkVariables()
		v.checkSubscriptions()
	}
	// What follows goes into fragments, which has an end only without cycles.
	if !v.over && !v.graph.cyclic && v.checkExpansion() {
		v.checkIntrospection()
		v.checkMerging()
	}
}

// What a unit of effort is made of. One takes about 25 ns.
const (
	stepsPerEffort = 8 // of Validator.steps
	effortPerToken = 4
)

// Effort tells how much work has been done for all documents so far. What is
// bounded for each of them can add up where many come together.
func (v *Validator) Effort() int { return v.effort }

// checkMerging reports fields that cannot have one name in the answer.
func (v *Validator) checkMerging() {
	conflicts, ok := v.merge.Conflicts(merging.Input{
		Schema: v.s, Document: v.doc, Names: &v.names, Resolved: v.resolved,
		Hide: v.o.Hide, Most: v.o.MaxErrors + 1,
	})
	for _, c := range conflicts {
		v.report(c.Message, c.Places...)
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
	v.names.Reset(doc)
	v.problems, v.over, v.steps, v.quiet = v.problems[:0], false, maxSteps, 0
	v.resolved = names.Sized(v.resolved, len(doc.Selections))
	v.defs = names.Sized(v.defs, len(doc.Operations)+len(doc.Fragments))
	v.varTypes = names.Sized(v.varTypes, len(doc.Variables))
	v.usages, v.metas = v.usages[:0], v.metas[:0]
	v.fragments.Clear()
	v.finder = suggest.Finder{}
	v.graph.reset(len(doc.Fragments))
	v.merge.Reset(len(doc.Selections))
}

// stringRef returns String!.
func stringRef(s *schema.Schema) schema.TypeRef {
	t, _ := s.TypeNamed([]byte("String"))
	ref, _ := schema.Named(t).NonNull()
	return ref
}

// spend takes steps of work, and tells whether there were as many left.
func (v *Validator) spend(n int) bool {
	v.steps -= n
	if v.steps < 0 && !v.over {
		v.refuse("its fragments and variables are used too often")
	}
	return v.steps >= 0
}

// TooComplex tells whether an error of Check is about what the document would
// take to check or to run, rather than about a rule of GraphQL.
func TooComplex(e *syntax.Error) bool { return strings.HasPrefix(e.Message, tooComplex) }

// refuse reports that checking ends here, whatever else may be wrong.
func (v *Validator) refuse(why string) {
	v.report(tooComplex + why + ".")
	v.over = true
}

// executable reports definitions of types, beside which nothing else is worth
// telling.
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
