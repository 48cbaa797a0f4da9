package graph

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/jensneuse/abstractlogger"
	"github.com/wundergraph/astjson"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/ast"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/plan"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/resolve"

	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// A restField is one field of a REST source, as the library's planner knows it.
type restField struct {
	*source
	field schema.FieldID
}

// restFactory makes the planners of a field.
type restFactory struct{}

// Planner implements plan.PlannerFactory.
func (restFactory) Planner(abstractlogger.Logger) plan.DataSourcePlanner[*restField] {
	return &restPlanner{root: ast.InvalidRef}
}

// Context implements plan.PlannerFactory.
func (restFactory) Context() context.Context { return context.Background() }

// UpstreamSchema implements plan.PlannerFactory.
func (restFactory) UpstreamSchema(of plan.DataSourceConfiguration[*restField]) (*ast.Document, bool) {
	return of.CustomConfiguration().schema, true
}

// PlanningBehavior implements plan.PlannerFactory. A path of the response is that of keys.
func (restFactory) PlanningBehavior() plan.DataSourcePlanningBehavior {
	return plan.DataSourcePlanningBehavior{OverrideFieldPathFromAlias: true, AllowPlanningTypeName: true}
}

// A restPlanner plans one selection of a field.
type restPlanner struct {
	of   *restField
	v    *plan.Visitor
	conf plan.DataSourcePlannerConfiguration
	id   int
	root int // the field in the operation
}

// SetID implements plan.DataSourcePlanner.
func (p *restPlanner) SetID(id int) { p.id = id }

// ID implements plan.DataSourcePlanner.
func (p *restPlanner) ID() int { return p.id }

// DownstreamResponseFieldAlias implements plan.DataSourcePlanner.
func (p *restPlanner) DownstreamResponseFieldAlias(int) (string, bool) { return "", false }

// ConfigureSubscription implements plan.DataSourcePlanner.
func (p *restPlanner) ConfigureSubscription() plan.SubscriptionConfiguration {
	of := &topicFetch{restField: p.of, key: p.v.Operation.FieldAliasOrNameString(p.root), shape: p.shape(p.root, p.of.field)}
	c := plan.SubscriptionConfiguration{Input: "{}", DataSource: of}
	c.PostProcessing.SelectResponseDataPath, c.PostProcessing.SelectResponseErrorsPath = []string{"data"}, []string{"errors"}
	return c
}

// Register implements plan.DataSourcePlanner.
func (p *restPlanner) Register(v *plan.Visitor, of plan.DataSourceConfiguration[*restField], conf plan.DataSourcePlannerConfiguration) error {
	p.v, p.of, p.conf = v, of.CustomConfiguration(), conf
	v.Walker.RegisterEnterFieldVisitor(p)
	return nil
}

// EnterField implements astvisitor.EnterFieldVisitor. It is called for fields above as well.
func (p *restPlanner) EnterField(ref int) {
	s := p.of.graph.data.Schema
	field := &s.Fields[p.of.field]
	if p.root == ast.InvalidRef && p.v.Operation.FieldNameString(ref) == field.Name &&
		p.v.Walker.EnclosingTypeDefinition.NameString(p.v.Definition) == s.Types[field.Owner].Name {
		p.root = ref
	}
}

// ConfigureFetch implements plan.DataSourcePlanner.
func (p *restPlanner) ConfigureFetch() resolve.FetchConfiguration {
	if p.root == ast.InvalidRef {
		panic("the field of a REST source is not in the operation")
	}
	doc := p.v.Operation
	fetch := &restFetch{restField: p.of, key: doc.FieldAliasOrNameString(p.root)}
	fetch.shape = p.shape(p.root, p.of.field)
	var vars resolve.Variables
	in := []byte(`{"arguments":{`)
	for i, a := range doc.FieldArguments(p.root) {
		v := doc.ArgumentValue(a)
		if v.Kind != ast.ValueKindVariable {
			panic("an argument is no variable")
		}
		slot, _ := vars.AddVariable(&resolve.ContextVariable{
			Path: []string{doc.VariableValueNameString(v.Ref)}, Renderer: resolve.NewJSONVariableRenderer(),
		})
		if i > 0 {
			in = append(in, ',')
		}
		in = append(append(strconv.AppendQuote(in, doc.ArgumentNameString(a)), ':'), slot...)
	}
	in = append(in, `},"objects":[`...)
	fc := resolve.FetchConfiguration{DataSource: fetch}
	fc.PostProcessing.SelectResponseErrorsPath = []string{"errors"}
	if fetch.nested = p.of.isNested(); fetch.nested {
		slot, _ := vars.AddVariable(resolve.NewResolvableObjectVariable(p.needs()))
		in = append(in, slot...)
		fetch.listed = p.conf.PathType != plan.PlannerPathObject
		fc.RequiresEntityBatchFetch, fc.RequiresEntityFetch = fetch.listed, !fetch.listed
		if fetch.listed {
			fc.PostProcessing.MergePath = []string{fetch.key}
		}
	}
	fc.PostProcessing.SelectResponseDataPath = []string{"data"}
	fc.Input, fc.Variables = string(append(in, `]}`...)), vars
	return fc
}

// isNested reports whether the field belongs to an object.
func (f *restField) isNested() bool {
	s := f.graph.data.Schema
	owner := s.Fields[f.field].Owner
	return owner != s.Query && owner != s.Mutation
}

// needs returns what is read of the object that the field belongs to.
func (p *restPlanner) needs() *resolve.Object {
	s := p.of.graph.data.Schema
	owner := s.Types[s.Fields[p.of.field].Owner].Name
	remapped := make(map[string]string)
	for i := range p.conf.RequiredFields {
		maps.Copy(remapped, p.conf.RequiredFields[i].RemappedPaths)
	}
	root := &resolve.Object{Fields: []*resolve.Field{{Name: []byte(schema.Typename), Value: &resolve.StaticString{Path: []string{schema.Typename}, Value: owner}}}}
	for _, path := range p.of.Needs {
		object, text := root, owner
		for i, name := range path {
			text += "." + name
			key := name
			if to, ok := remapped[text]; ok {
				key = to
			}
			if i == len(path)-1 {
				object.Fields = append(object.Fields, &resolve.Field{Name: []byte(name), Value: &resolve.Scalar{Path: []string{key}, Nullable: true}})
				break
			}
			at := slices.IndexFunc(object.Fields, func(f *resolve.Field) bool { return string(f.Name) == name })
			if at < 0 {
				at = len(object.Fields)
				object.Fields = append(object.Fields, &resolve.Field{Name: []byte(name), Value: &resolve.Object{Path: []string{key}, Nullable: true}})
			}
			object = object.Fields[at].Value.(*resolve.Object)
		}
	}
	return root
}

// shape returns what is taken of the value of a field of the operation.
func (p *restPlanner) shape(ref int, f schema.FieldID) shape {
	doc, g := p.v.Operation, p.of.graph.data
	sh := shape{key: doc.FieldAliasOrNameString(ref), field: f, mapping: g.Mapping(f)}
	if set, ok := doc.FieldSelectionSet(ref); ok {
		p.selections(set, g.Schema.Fields[f].Type.Type(), nil, &sh.children)
	}
	return sh
}

// selections adds the fields of a selection set that the source has.
func (p *restPlanner) selections(set int, t schema.TypeID, on []schema.TypeID, to *[]shape) {
	doc, g := p.v.Operation, p.of.graph.data
	for _, ref := range doc.SelectionSets[set].SelectionRefs {
		sel := doc.Selections[ref]
		switch sel.Kind {
		case ast.SelectionKindField:
			name := doc.FieldNameString(sel.Ref)
			if name == schema.Typename {
				*to = append(*to, shape{key: doc.FieldAliasOrNameString(sel.Ref), on: on, typename: true})
				continue
			}
			f, ok := g.Schema.FieldNamed(t, []byte(name))
			if !ok || g.Owner(f) != nil {
				continue
			}
			sh := p.shape(sel.Ref, f)
			sh.on = on
			*to = append(*to, sh)
		case ast.SelectionKindInlineFragment:
			inner, types := t, on
			if name := doc.InlineFragmentTypeConditionNameString(sel.Ref); name != "" {
				inner, _ = g.Schema.TypeNamed([]byte(name))
				types = narrowed(g.Schema, on, inner)
			}
			if set, ok := doc.InlineFragmentSelectionSet(sel.Ref); ok {
				p.selections(set, inner, types, to)
			}
		}
	}
}

// narrowed returns the objects of a type that are among others; nil stands for all.
func narrowed(s *schema.Schema, among []schema.TypeID, t schema.TypeID) []schema.TypeID {
	left := []schema.TypeID{}
	for i := range s.Types {
		if id := schema.TypeID(i); s.Possible(t).Has(id) && (among == nil || contains(among, id)) {
			left = append(left, id)
		}
	}
	return left
}

// A restFetch makes the requests for one selection of a field.
type restFetch struct {
	noFiles
	*restField
	key    string
	shape  shape
	nested bool // the field belongs to an object
	listed bool // and there may be several of them
	path   []string
}

// Load implements resolve.DataSource: it makes a request for each object, and returns their
// values in order.
func (f *restFetch) Load(ctx context.Context, _ http.Header, input []byte) (out []byte, err error) {
	r := runOf(ctx)
	in, err := astjson.ParseBytes(input)
	if err != nil {
		return nil, err
	}
	arguments := in.Get("arguments")
	if !f.nested {
		return f.root(r, &values{arguments: arguments}), nil
	}
	return f.objects(r, arguments, in.GetArray("objects")), nil
}

// root returns the value of a field of a root type.
func (f *restFetch) root(r *run, v *values) []byte {
	sh := shaper{schema: f.graph.data.Schema, out: []byte(`{"data":{` + strconv.Quote(f.key) + `:`)}
	if err := f.one(r, v, &sh); err != nil {
		sh.out = append(sh.out, `null},"errors":`...)
		return append(appendErrors(sh.out, err.Error(), [][]string{{f.key}}, nil), '}')
	}
	return append(sh.out, `}}`...)
}

// objects returns the values of a field of objects.
func (f *restFetch) objects(r *run, arguments *astjson.Value, objects []*astjson.Value) []byte {
	if len(objects) > maxObjects {
		err := f.faultf(r, "the list has more than %d objects", maxObjects)
		return append(appendErrors([]byte(`{"data":null,"errors":`), err.Error(), [][]string{f.path}, nil), '}')
	}
	type part struct {
		out []byte
		err error
	}
	parts := make([]part, len(objects))
	slots := make(chan struct{}, maxAtOnce)
	var all sync.WaitGroup
	for i := range objects {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			defer r.recovered(&parts[i].err)
			sh := shaper{schema: f.graph.data.Schema}
			parts[i].err = f.one(r, &values{arguments: arguments, object: objects[i]}, &sh)
			parts[i].out = sh.out
		})
	}
	all.Wait()
	before, behind := `{"data":[`, `]}`
	if !f.listed {
		before, behind = `{"data":{`+strconv.Quote(f.key)+`:`, `}}` // the library takes null alone for a failure
	}
	sh := shaper{schema: f.graph.data.Schema, out: []byte(before)}
	if !f.listed && len(parts) == 0 {
		sh.out = append(sh.out, "null"...)
	}
	var nulls []string // why values are null, in order; "": the source says so
	failed := false
	for i := range parts {
		if i > 0 {
			sh.out = append(sh.out, ',')
		}
		switch err := parts[i].err; {
		case err != nil:
			failed = true
			nulls = append(nulls, err.Error())
			sh.out = append(sh.out, "null"...)
		default:
			if string(parts[i].out) == "null" {
				nulls = append(nulls, "")
			}
			sh.out = append(sh.out, parts[i].out...)
		}
	}
	if failed {
		r.note(f.path, nulls)
	}
	return append(sh.out, behind...)
}

// one makes one request and writes the value of the field.
func (f *restFetch) one(r *run, v *values, to *shaper) error {
	address, err := f.address(r.ex, v)
	if err != nil {
		return f.faultf(r, "%s", err)
	}
	method := f.Config.Method
	if method == "" {
		method = http.MethodGet
	}
	headers, body := f.headersFor(r.ex, v), f.content(r.ex, v)
	if headers["Accept"] == nil {
		headers["Accept"] = jsonTypes
	}
	if body != nil && headers["Content-Type"] == nil {
		headers["Content-Type"] = jsonTypes
	}
	resp, err := f.call(r, method, address, headers, body)
	if err != nil {
		return err
	}
	found, err := f.found(r, resp)
	switch {
	case err != nil:
		return err
	case found == nil:
		to.out = append(to.out, "null"...)
	default:
		to.value(&f.shape, found)
	}
	return nil
}

// found returns what a response has, of which the value is a part. It is nil without a body:
// 204, and what others send in its place.
func (f *restFetch) found(r *run, resp outcome) (*astjson.Value, error) {
	if f.Own {
		return f.data(r, resp)
	}
	if err := f.refused(r, resp.status); err != nil || len(resp.body) == 0 {
		return nil, err
	}
	parsed, err := astjson.ParseBytes(resp.body)
	if err != nil {
		return nil, f.faultf(r, "the response is not JSON")
	}
	return parsed, nil
}

// data returns the data of a response of GraphQL without errors. A response with errors may
// have any status.
func (f *restFetch) data(r *run, resp outcome) (*astjson.Value, error) {
	parsed, malformed := astjson.ParseBytes(resp.body)
	if malformed == nil {
		if all := parsed.GetArray("errors"); len(all) > 0 {
			return nil, f.faultf(r, "%s", cmp.Or(string(all[0].GetStringBytes("message")), "an error without a message"))
		}
	}
	if err := f.refused(r, resp.status); err != nil {
		return nil, err
	}
	if malformed != nil || parsed.GetObject("data") == nil {
		return nil, f.faultf(r, "the response is not one of GraphQL")
	}
	return parsed.Get("data"), nil
}

var jsonTypes = []string{"application/json"}
