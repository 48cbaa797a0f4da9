// Package datagraph reads what the data sources of a definition mean against its schema:
// which source has the value of which field, what requests are made of, and where values
// are in responses.
package datagraph

import (
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/graphql/compose"
	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// A Graph is the data graph or supergraph of an API. It is immutable.
type Graph struct {
	Schema  *schema.Schema
	Sources []*Source
	Headers []Named // for all sources, unless a source has one of that name

	owners   map[schema.FieldID]*Source
	mappings map[schema.FieldID]Mapping
}

// A Source is a data source, or a subgraph: a GraphQL source whose Fields are nil.
type Source struct {
	Name   string
	Config *definition.GraphQLSourceConfig
	REST   bool             // requests are made of templates, one for each value of a field
	Own    bool             // it is a GraphQL source that is sent an operation of its own; REST is set as well
	Topics bool             // it is topics of a message broker, whose messages are as responses; REST is set as well
	Fields []schema.FieldID // whose values it has, as the definition lists them

	// Of a source whose requests are made of templates.
	URL     Template
	Query   []Named
	Body    Body
	Headers []Named // of a GraphQL source as well

	Needs [][]string // paths of the fields of the object that requests are made of, each once

	// Of a subgraph.
	Subgraph *compose.Metadata // nil: it is no subgraph
	OneByOne bool              // it is asked for one entity at a time
}

// A Named is a template with a name: a header or a parameter.
type Named struct {
	Name  string
	Value Template
}

// A Mapping says where the value of a field is.
type Mapping struct {
	Whole bool     // it is the whole response, or the whole value above it
	Path  []string // members on the way to it, unless it is Whole; never empty then
}

// Owner returns the source that has the value of a field. It is nil if that is the one of
// the field above.
func (g *Graph) Owner(f schema.FieldID) *Source { return g.owners[f] }

// Mapping returns where the value of a field is.
func (g *Graph) Mapping(f schema.FieldID) Mapping {
	if m, ok := g.mappings[f]; ok {
		return m
	}
	return Mapping{Path: []string{g.Schema.Fields[f].Name}}
}

// Streams reports whether a source has root fields of subscriptions.
func (g *Graph) Streams(s *Source) bool {
	if s.Subgraph != nil {
		return slices.ContainsFunc(s.Subgraph.Types, func(t compose.Type) bool { return t.Root && t.Name == "Subscription" })
	}
	return slices.ContainsFunc(s.Fields, func(f schema.FieldID) bool { return g.Schema.Fields[f].Owner == g.Schema.Subscription })
}

// Below returns the object and interface types whose fields a source may be asked for, and
// calls do with each of these fields. Fields that another source has are not among them,
// nor is what is below them.
func (g *Graph) Below(s *Source, do func(schema.FieldID)) {
	seen := make(map[schema.TypeID]bool)
	var visit func(schema.TypeID)
	visit = func(t schema.TypeID) {
		if seen[t] || !g.Schema.Types[t].Kind.Composite() {
			return
		}
		seen[t] = true
		for f := g.Schema.Types[t].Fields.Lo; f < g.Schema.Types[t].Fields.Hi; f++ {
			if id := schema.FieldID(f); g.owners[id] == nil && !g.Schema.IsMeta(id) {
				do(id)
				visit(g.Schema.Fields[f].Type.Type())
			}
		}
		if kind := g.Schema.Types[t].Kind; kind != schema.Object {
			for other := range g.Schema.Types {
				if g.Schema.Possible(t).Has(schema.TypeID(other)) {
					visit(schema.TypeID(other))
				}
			}
		}
		for _, i := range g.Schema.Implements(t) {
			visit(i)
		}
	}
	for _, f := range s.Fields {
		visit(g.Schema.Fields[f].Type.Type())
	}
}

// Compile reads the data graph or supergraph of a definition that is valid by itself. The
// error is a *definition.Problems with everything that does not fit the schema, or because
// of which subgraphs cannot be composed.
func Compile(api *definition.API, s *schema.Schema) (*Graph, error) {
	if api.IsSupergraph() {
		return compileSupergraph(api, s)
	}
	c := compiler{engine: api.GraphQL.Engine, graph: &Graph{
		Schema: s, owners: make(map[schema.FieldID]*Source), mappings: make(map[schema.FieldID]Mapping),
	}}
	if c.engine == nil {
		c.engine = new(definition.GraphQLEngine)
	}
	for i := range c.engine.DataSources {
		c.source(object.Item(path+".data_sources", i), &c.engine.DataSources[i])
	}
	for i := range c.engine.GlobalHeaders {
		one := &c.engine.GlobalHeaders[i]
		c.header(object.Item(path+".global_headers", i)+".value", one.Key, one.Value, nil, &c.graph.Headers)
	}
	c.roots()
	for i := range c.engine.FieldConfigs {
		c.mapping(object.Item(path+".field_configs", i), &c.engine.FieldConfigs[i])
	}
	if len(c.problems) > 0 {
		return nil, &c.problems
	}
	return c.graph, nil
}

const path = "graphql.engine"

type compiler struct {
	engine   *definition.GraphQLEngine
	graph    *Graph
	problems definition.Problems
}

func (c *compiler) add(at, message string) {
	c.problems = append(c.problems, definition.Problem{Path: at, Message: message})
}

func (c *compiler) source(at string, def *definition.GraphQLDataSource) {
	own, topics := def.Config.HasOperation, def.Kind == definition.BrokerSource
	s := &Source{Name: def.Name, Config: &def.Config, REST: own || topics || def.Kind == "REST", Own: own, Topics: topics}
	for i := range def.RootFields {
		c.fields(object.Item(at+".root_fields", i), &def.RootFields[i], s)
	}
	for _, name := range object.SortedKeys(def.Config.Headers) {
		c.header(object.Entry(at+".config.headers", name), name, def.Config.Headers[name], s, &s.Headers)
	}
	switch {
	case s.Topics:
	case s.Own:
		c.operation(at+".config", s)
	case s.REST:
		s.URL = c.template(at+".config.url", def.Config.URL, s)
		for i := range def.Config.Query {
			one := &def.Config.Query[i]
			s.Query = append(s.Query, Named{one.Name, c.template(object.Item(at+".config.query", i)+".value", one.Value, s)})
		}
		if def.Config.Body != "" {
			s.Body = c.body(at+".config.body", def.Config.Body, s)
		}
	}
	c.graph.Sources = append(c.graph.Sources, s)
}

// fields gives a source the fields of one type.
func (c *compiler) fields(at string, def *definition.GraphQLRootFields, s *Source) {
	g := c.graph
	t, ok := g.Schema.TypeNamed([]byte(def.Type))
	switch {
	case !ok || g.Schema.Types[t].BuiltIn:
		c.add(at+".type", "is no type of the schema")
		return
	case g.Schema.Types[t].Kind != schema.Object:
		c.add(at+".type", "must be an object type; list the fields of each type that implements it")
		return
	case s.Topics && t != g.Schema.Subscription:
		c.add(at+".type", "must be the subscription type: the source is of kind msgbroker")
		return
	case s.REST && !s.Topics && t == g.Schema.Subscription:
		c.add(at+".type", "is the subscription type, whose fields need a source of kind msgbroker, or GraphQL without has_operation")
		return
	case !s.REST && t != g.Schema.Query && t != g.Schema.Mutation && t != g.Schema.Subscription:
		c.add(at+".type", "must be the query, mutation or subscription type: a source of kind GraphQL is asked for root fields; use one of kind REST, or has_operation, to join")
		return
	}
	for i, name := range def.Fields {
		f, ok := g.Schema.FieldNamed(t, []byte(name))
		switch at := object.Item(at+".fields", i); {
		case !ok || g.Schema.IsMeta(f):
			c.add(at, "is no field of the type "+def.Type)
		case g.owners[f] != nil:
			c.add(at, "has the data source "+g.owners[f].Name+" already")
		default:
			g.owners[f] = s
			s.Fields = append(s.Fields, f)
		}
	}
}

func (c *compiler) header(at, name, value string, s *Source, to *[]Named) {
	*to = append(*to, Named{name, c.template(at, value, s)})
}

// template reads a text, whose variables must exist for every field of the source; s is nil
// for a text of all sources.
func (c *compiler) template(at, text string, s *Source) Template {
	t, err := parseTemplate(text)
	if err != nil {
		c.add(at, err.Error())
		return nil
	}
	for i := range t {
		c.piece(at, &t[i], s)
	}
	return t
}

func (c *compiler) piece(at string, p *Piece, s *Source) {
	switch {
	case p.Root == Text || p.Root == Header:
		return
	case s == nil || !s.REST:
		c.add(at, "may have {{.request.headers.Name}} only")
		return
	}
	schemaOf := c.graph.Schema
	for _, f := range s.Fields {
		field := &schemaOf.Fields[f]
		owner := schemaOf.Types[field.Owner].Name
		if p.Root == Arguments {
			if _, ok := schemaOf.InputNamed(field.Arguments, []byte(p.Path[0])); !ok {
				c.add(at, "names {{.arguments."+p.Path[0]+"}}, and "+owner+"."+field.Name+" has no such argument")
			}
			continue
		}
		if why := c.object(field.Owner, p.Path); why != "" {
			c.add(at, "names {{.object."+strings.Join(p.Path, ".")+"}}: "+why)
		}
	}
	if p.Root == Object && !slices.ContainsFunc(s.Needs, func(other []string) bool { return slices.Equal(other, p.Path) }) {
		s.Needs = append(s.Needs, p.Path)
	}
}

// object returns why fields do not lead to a scalar or enum from a type, or "".
func (c *compiler) object(t schema.TypeID, fields []string) string {
	s := c.graph.Schema
	if t == s.Query || t == s.Mutation || t == s.Subscription {
		return "fields of the " + s.Types[t].Name + " type belong to no object"
	}
	for i, name := range fields {
		f, ok := s.FieldNamed(t, []byte(name))
		if !ok {
			return s.Types[t].Name + " has no field " + name
		}
		if s.Fields[f].Arguments.Hi > s.Fields[f].Arguments.Lo {
			return s.Types[t].Name + "." + name + " has arguments; name a field without"
		}
		ref := s.Fields[f].Type.Nullable()
		t = ref.Type()
		last := i == len(fields)-1
		switch {
		case last && s.Types[t].Kind.Composite():
			return s.Types[s.Fields[f].Owner].Name + "." + name + " is an object; name a field of it"
		case !last && (!ref.IsNamed() || s.Types[t].Kind != schema.Object):
			return s.Types[s.Fields[f].Owner].Name + "." + name + " is no object type"
		}
	}
	return ""
}

// roots reports root fields without a source.
func (c *compiler) roots() {
	s := c.graph.Schema
	for _, t := range []schema.TypeID{s.Query, s.Mutation, s.Subscription} {
		if t == schema.NoType {
			continue
		}
		for f := s.Types[t].Fields.Lo; f < s.Types[t].Fields.Hi; f++ {
			if id := schema.FieldID(f); c.graph.owners[id] == nil && !s.IsMeta(id) {
				c.add(path+".data_sources", "have no source of "+s.Types[t].Name+"."+s.Fields[f].Name+"; list it in the root_fields of one")
			}
		}
	}
}

func (c *compiler) mapping(at string, def *definition.GraphQLFieldConfig) {
	g := c.graph
	t, ok := g.Schema.TypeNamed([]byte(def.TypeName))
	if !ok || g.Schema.Types[t].BuiltIn {
		c.add(at+".type_name", "is no type of the schema")
		return
	}
	f, ok := schema.NoField, g.Schema.Types[t].Kind == schema.Object
	if ok {
		f, ok = g.Schema.FieldNamed(t, []byte(def.FieldName))
	}
	switch {
	case !ok || g.Schema.IsMeta(f):
		c.add(at+".field_name", "is no field of an object type "+def.TypeName)
		return
	case g.owners[f] != nil && !g.owners[f].REST:
		c.add(at+".field_name", "has the source "+g.owners[f].Name+", which is of kind GraphQL; only values of REST sources, of message brokers and of sources with has_operation are mapped")
		return
	case c.mapped(f):
		c.add(at+".field_name", "is mapped by an entry before it")
		return
	}
	whole := def.DisableDefaultMapping || slices.Equal(def.Path, []string{""})
	m := Mapping{Whole: whole, Path: def.Path}
	if whole {
		m.Path = nil
	} else if len(m.Path) == 0 {
		m.Path = []string{def.FieldName}
	}
	g.mappings[f] = m
}

func (c *compiler) mapped(f schema.FieldID) bool {
	_, ok := c.graph.mappings[f]
	return ok
}
