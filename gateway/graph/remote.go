package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/wundergraph/astjson"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/ast"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/astparser"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/asttransform"
	gds "github.com/wundergraph/graphql-go-tools/v2/pkg/engine/datasource/graphql_datasource"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/datasource/httpclient"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/plan"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/resolve"

	"github.com/sluicegate/sluice/internal/datagraph"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/jsonscan"
)

// dataSources returns what the library knows of a source: a source for each field of a REST
// source, and one for a GraphQL source or a subgraph.
func (s *source) dataSources(number int) (all []plan.DataSource, err error) {
	if s.Subgraph != nil {
		md, err := s.nodesOf()
		if err != nil {
			return nil, err
		}
		one, err := s.remote(strconv.Itoa(number), md)
		return []plan.DataSource{one}, err
	}
	below := s.nodes(func(do func(schema.FieldID)) { s.graph.data.Below(s.Source, do) })
	if !s.REST {
		roots := s.nodes(func(do func(schema.FieldID)) { each(s.Fields, do) })
		one, err := s.remote(strconv.Itoa(number), &plan.DataSourceMetadata{RootNodes: roots, ChildNodes: below})
		return []plan.DataSource{one}, err
	}
	if s.schema, err = documentOf(schemaText(s.graph.data, s.Source)); err != nil {
		return nil, err
	}
	sc := s.graph.data.Schema
	for _, f := range s.Fields {
		field := &sc.Fields[f]
		owner := sc.Types[field.Owner].Name
		md := &plan.DataSourceMetadata{
			RootNodes:  plan.TypeFields{{TypeName: owner, FieldNames: []string{field.Name}}},
			ChildNodes: below,
		}
		if len(s.Needs) > 0 {
			md.Requires = plan.FederationFieldConfigurations{{TypeName: owner, FieldName: field.Name, SelectionSet: selectionOf(s.Needs)}}
		}
		id := strconv.Itoa(number) + "." + strconv.FormatUint(uint64(f), 10)
		one, err := plan.NewDataSourceConfigurationWithName(id, s.Name, plan.PlannerFactory[*restField](restFactory{}), md, &restField{s, f})
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// documentOf reads a schema with what every schema has.
func documentOf(text string) (*ast.Document, error) {
	doc, report := astparser.ParseGraphqlDocumentString(text)
	if report.HasErrors() {
		return nil, report
	}
	return &doc, asttransform.MergeDefinitionWithBaseSchema(&doc)
}

func each(fields []schema.FieldID, do func(schema.FieldID)) {
	for _, f := range fields {
		do(f)
	}
}

// nodes groups fields by their type.
func (s *source) nodes(fields func(func(schema.FieldID))) (all plan.TypeFields) {
	sc, at := s.graph.data.Schema, make(map[schema.TypeID]int)
	fields(func(f schema.FieldID) {
		t := sc.Fields[f].Owner
		i, ok := at[t]
		if !ok {
			i = len(all)
			at[t] = i
			all = append(all, plan.TypeField{TypeName: sc.Types[t].Name})
		}
		all[i].FieldNames = append(all[i].FieldNames, sc.Fields[f].Name)
	})
	return all
}

// selectionOf returns paths of fields as a selection set.
func selectionOf(paths [][]string) string {
	var b strings.Builder
	for _, path := range paths {
		b.WriteString(strings.Join(path, " { "))
		b.WriteString(strings.Repeat(" }", len(path)-1))
		b.WriteString(" ")
	}
	return strings.TrimSpace(b.String())
}

// remote returns a GraphQL source of the library. It plans: what it would call the source
// with is replaced by a remoteFetch in every plan.
func (s *source) remote(id string, md *plan.DataSourceMetadata) (plan.DataSource, error) {
	factory, err := gds.NewFactory(context.Background(), new(http.Client), noSubscriptions{})
	if err != nil {
		return nil, err
	}
	var sc *gds.SchemaConfiguration
	if s.Subgraph != nil {
		sc, err = s.federated()
	} else {
		sc, err = gds.NewSchemaConfiguration(schemaText(s.graph.data, s.Source), nil)
	}
	if err != nil {
		return nil, err
	}
	conf, err := gds.NewConfiguration(gds.ConfigurationInput{
		SchemaConfiguration: sc,
		Fetch:               &gds.FetchConfiguration{URL: "http://source.invalid/"}, // remoteFetch has the address
		Subscription:        &gds.SubscriptionConfiguration{URL: "http://source.invalid/"},
	})
	if err != nil {
		return nil, err
	}
	return plan.NewDataSourceConfigurationWithName(id, s.Name, plan.PlannerFactory[gds.Configuration](factory), md, conf)
}

// noSubscriptions is never called: the gateway subscribes.
type noSubscriptions struct{}

// Subscribe implements gds.GraphQLSubscriptionClient.
func (noSubscriptions) Subscribe(*resolve.Context, gds.GraphQLSubscriptionOptions, resolve.SubscriptionUpdater) error {
	return errors.New("subscriptions are not supported")
}

// A remoteFetch sends an operation to a GraphQL source or a subgraph. Every failure is a
// response of GraphQL with errors that have the paths of the root fields.
type remoteFetch struct {
	noFiles
	*source
	entities *entityFetch // nil: it is not one for entities
	trigger  bool         // the response is the event of a subscription
}

// Load implements resolve.DataSource.
func (f *remoteFetch) Load(ctx context.Context, _ http.Header, input []byte) ([]byte, error) {
	r := runOf(ctx)
	sent := sentOf(input)
	body, err := f.load(r, sent)
	if err != nil {
		return append(appendErrors([]byte(`{"data":null,"errors":`), err.Error(), rootKeys(sent), f.extensions(nil)), '}'), nil
	}
	return body, nil
}

func (f *remoteFetch) load(r *run, sent []byte) (body []byte, err error) {
	defer r.recovered(&err)
	if f.entities != nil {
		return f.join(r, sent)
	}
	if f.trigger {
		return f.checked(r, *r.event, sent)
	}
	out, err := f.post(r, sent)
	if err != nil {
		return nil, err
	}
	return f.checked(r, out, sent)
}

// maxNesting bounds the nesting of JSON that is scanned. What is nested deeper is parsed.
const maxNesting = 500

// sentOf returns the request that the library has put together: the member body, without
// variables that the client has not set.
func sentOf(input []byte) (body []byte) {
	var undefined []byte
	s := jsonscan.New(input, maxNesting)
	for s.Object(); s.Member(); {
		switch name := string(s.Name()); name {
		case "body":
			body = s.Value().Raw
		case httpclient.UNDEFINED_VARIABLES:
			undefined = s.Value().Raw
		default:
			s.Value()
		}
	}
	if undefined == nil {
		return body
	}
	request, err := astjson.ParseBytes(body)
	unset, failed := astjson.ParseBytes(undefined)
	if err != nil || failed != nil {
		return body
	}
	variables := request.Get("variables")
	for _, name := range unset.GetArray() {
		if name := string(name.GetStringBytes()); variables.Exists(name) && variables.Get(name).Type() == astjson.TypeNull {
			variables.Del(name)
		}
	}
	return request.MarshalTo(nil)
}

// post sends an operation.
func (f *remoteFetch) post(r *run, sent []byte) (outcome, error) {
	header := f.headersFor(r.ex, nil)
	header["Accept"], header["Content-Type"] = graphQLTypes, jsonTypes
	return f.call(r, http.MethodPost, f.Config.URL, header, sent)
}

var graphQLTypes = []string{"application/graphql-response+json, application/json"}

// checked returns the body of a response if it is one of GraphQL. A status above 299 is a
// fault unless the body says more.
func (f *remoteFetch) checked(r *run, out outcome, sent []byte) ([]byte, error) {
	if out.status < 300 && isClean(out.body) {
		return out.body, nil
	}
	parsed, err := astjson.ParseBytes(out.body)
	whole := err == nil && parsed.Type() == astjson.TypeObject
	failed := whole && parsed.Exists("errors") && len(parsed.GetArray("errors")) > 0
	switch refused := f.refused(r, out.status); {
	case refused != nil && !failed:
		return nil, refused
	case !whole || !failed && parsed.Get("data").Type() != astjson.TypeObject:
		return nil, f.faultf(r, "the response is not one of GraphQL")
	case !failed:
		return out.body, nil
	}
	r.faults.Add(1)
	return f.placed(parsed, sent), nil
}

// isClean reports whether a response has data, each member once, and no errors.
func isClean(body []byte) bool {
	data := false
	s := jsonscan.New(body, maxNesting)
	for s.Object(); s.Member(); {
		name, kind := s.Name(), s.Kind()
		switch {
		case jsonscan.Equal(name, "data") && kind == jsonscan.Object && !data:
			data = true
		case jsonscan.Equal(name, "data") || jsonscan.Equal(name, "errors"):
			return false
		}
		s.Value()
	}
	return s.End() && data
}

// placed gives errors without a path that of the root field, or those of all.
func (f *remoteFetch) placed(parsed *astjson.Value, sent []byte) []byte {
	keys := rootKeys(sent)
	b := []byte(`{"data":`)
	if d := parsed.Get("data"); d != nil && d.Type() == astjson.TypeObject {
		b = d.MarshalTo(b)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"errors":[`...)
	for i, one := range parsed.GetArray("errors") {
		if i > 0 {
			b = append(b, ',')
		}
		if one.Type() != astjson.TypeObject || one.Get("message").Type() != astjson.TypeString {
			inner := appendErrors(nil, fmt.Sprintf("%s %q: an error without a message", f.kind, f.Name), keys, f.extensions(nil))
			b = append(b, inner[1:len(inner)-1]...)
			continue
		}
		more := f.extensions(one)
		if p := one.Get("path"); p != nil && p.Type() == astjson.TypeArray {
			b = jsonscan.AppendString(append(b, `{"message":`...), one.GetStringBytes("message"))
			b = appendExtensions(p.MarshalTo(append(b, `,"path":`...)), more)
			b = append(b, '}')
			continue
		}
		inner := appendErrors(nil, string(one.GetStringBytes("message")), keys, more)
		b = append(b, inner[1:len(inner)-1]...)
	}
	return append(b, `]}`...)
}

// rootKeys returns the response keys of the root fields of a request to a GraphQL source.
func rootKeys(request []byte) (keys [][]string) {
	parsed, err := astjson.ParseBytes(request)
	if err != nil {
		return nil
	}
	return keysOf(string(parsed.GetStringBytes("query")))
}

// keysOf returns the response keys of the root fields of an operation, as paths.
func keysOf(operation string) (keys [][]string) {
	var doc syntax.Document
	if syntax.Parse(&doc, []byte(operation), syntax.Limits{}) != nil || len(doc.Operations) == 0 {
		return nil
	}
	set := doc.Operations[0].Selections
	for i := set.Lo; i < set.Hi; i++ {
		if doc.Selections[i].Kind == syntax.Field {
			keys = append(keys, []string{doc.Text(doc.Selections[i].ResponseKey())})
		}
	}
	return keys
}

// appendErrors appends an array with the error for each path.
func appendErrors(b []byte, message string, paths [][]string, extensions json.RawMessage) []byte {
	if len(paths) == 0 {
		paths = [][]string{nil}
	}
	b = append(b, '[')
	for i, path := range paths {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonscan.AppendString(append(b, `{"message":`...), []byte(message))
		for j, name := range path {
			if j == 0 {
				b = append(b, `,"path":[`...)
			} else {
				b = append(b, ',')
			}
			b = jsonscan.AppendString(b, []byte(name))
		}
		if len(path) > 0 {
			b = append(b, ']')
		}
		b = append(appendExtensions(b, extensions), '}')
	}
	return append(b, ']')
}

func appendExtensions(b []byte, extensions json.RawMessage) []byte {
	if extensions == nil {
		return b
	}
	return append(append(b, `,"extensions":`...), extensions...)
}

// schemaText prints the schema of a graph, or the part of it that a source has.
func schemaText(g *datagraph.Graph, of *datagraph.Source) string {
	var b strings.Builder
	s := g.Schema
	has := func(schema.FieldID) bool { return true }
	if of != nil {
		fields := make(map[schema.FieldID]bool)
		g.Below(of, func(f schema.FieldID) { fields[f] = true })
		each(of.Fields, func(f schema.FieldID) { fields[f] = true })
		has = func(f schema.FieldID) bool { return fields[f] }
	}
	b.WriteString("schema {")
	for _, root := range []struct {
		name string
		id   schema.TypeID
	}{{"query", s.Query}, {"mutation", s.Mutation}, {"subscription", s.Subscription}} {
		if root.id != schema.NoType && (of == nil || root.name == "query" || hasAny(s, root.id, has)) {
			fmt.Fprintf(&b, " %s: %s", root.name, s.Types[root.id].Name)
		}
	}
	b.WriteString(" }\n")
	for i := range s.Types {
		if !s.Types[i].BuiltIn {
			printType(&b, s, schema.TypeID(i), has)
		}
	}
	return b.String()
}

func hasAny(s *schema.Schema, t schema.TypeID, has func(schema.FieldID) bool) bool {
	for f := s.Types[t].Fields.Lo; f < s.Types[t].Fields.Hi; f++ {
		if has(schema.FieldID(f)) && !s.IsMeta(schema.FieldID(f)) {
			return true
		}
	}
	return false
}

// printType prints the definition of a type with some of its fields. A type of which none
// are there gets one that nothing selects: the library needs every type that others name.
func printType(b *strings.Builder, s *schema.Schema, id schema.TypeID, has func(schema.FieldID) bool) {
	t := &s.Types[id]
	switch t.Kind {
	case schema.Scalar:
		fmt.Fprintf(b, "scalar %s\n", t.Name)
	case schema.Enum:
		fmt.Fprintf(b, "enum %s {", t.Name)
		for _, v := range s.Values[t.Values.Lo:t.Values.Hi] {
			b.WriteString(" " + v.Name)
		}
		b.WriteString(" }\n")
	case schema.Union:
		fmt.Fprintf(b, "union %s =", t.Name)
		for i := range s.Types {
			if s.Possible(id).Has(schema.TypeID(i)) {
				b.WriteString(" | " + s.Types[i].Name)
			}
		}
		b.WriteString("\n")
	case schema.InputObject:
		fmt.Fprintf(b, "input %s {", t.Name)
		printInputs(b, s, t.Inputs)
		b.WriteString(" }\n")
	case schema.Object, schema.Interface:
		fmt.Fprintf(b, "%s %s", map[schema.Kind]string{schema.Object: "type", schema.Interface: "interface"}[t.Kind], t.Name)
		for i, other := range s.Implements(id) {
			b.WriteString(map[bool]string{true: " implements ", false: " & "}[i == 0] + s.Types[other].Name)
		}
		b.WriteString(" {")
		if !hasAny(s, id, has) {
			b.WriteString(" sluice_none: Boolean")
		}
		for f := t.Fields.Lo; f < t.Fields.Hi; f++ {
			if s.IsMeta(schema.FieldID(f)) || !has(schema.FieldID(f)) {
				continue
			}
			b.WriteString(" " + s.Fields[f].Name)
			if a := s.Fields[f].Arguments; a.Hi > a.Lo {
				b.WriteString("(")
				printInputs(b, s, a)
				b.WriteString(")")
			}
			b.WriteString(": " + s.RefString(s.Fields[f].Type))
		}
		b.WriteString(" }\n")
	}
}

func printInputs(b *strings.Builder, s *schema.Schema, span schema.Span) {
	for i := span.Lo; i < span.Hi; i++ {
		in := &s.Inputs[i]
		fmt.Fprintf(b, " %s: %s", in.Name, s.RefString(in.Type))
		if in.HasDefault {
			b.WriteString(" = " + in.Default)
		}
	}
}
