// Package openapi describes the admin's routes as an OpenAPI 3.1 document.
package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// parameters documents every query parameter, by name.
var parameters = map[string]*huma.Param{
	"p":           {Description: "page, from 1; negative: everything, where the list permits it", Schema: &huma.Schema{Type: "integer", Default: 1}},
	"page_size":   {Description: "objects on a page", Schema: &huma.Schema{Type: "integer", Minimum: new(1.0), Maximum: new(500.0)}},
	"q":           {Description: "part of a name in any case, or a whole id; for keys the beginning of alias or hash", Schema: text()},
	"sort":        {Description: "order; - is descending", Schema: &huma.Schema{Type: "string", Enum: []any{"name", "-name", "created_at", "-created_at", "updated_at", "-updated_at"}, Default: "name"}},
	"active":      {Description: "true: only active ones; false: only refused ones", Schema: &huma.Schema{Type: "boolean"}},
	"policy_ids":  {Description: "ids, separated by commas", Schema: text()},
	"state":       {Description: "only those in this state: of policies active, draft or deny, of key requests pending, approved or rejected", Schema: &huma.Schema{Type: "string", Enum: []any{"active", "draft", "deny", "pending", "approved", "rejected"}}},
	"approved":    {Description: "true: only approved ones; false: only the others", Schema: &huma.Schema{Type: "boolean"}},
	"by_user":     {Description: "only those of the developer with this id", Schema: text()},
	"for_plan":    {Description: "only those whose for_plan is this", Schema: text()},
	"api_id":      {Description: "only those that name this API", Schema: text()},
	"policy_id":   {Description: "only those that name this policy", Schema: text()},
	"show":        {Description: "true: only what developers may see; false: only what they may not", Schema: &huma.Schema{Type: "boolean"}},
	"doc_type":    {Description: "only documents of this kind", Schema: &huma.Schema{Type: "string", Enum: []any{"openapi", "graphql", "markdown"}}},
	"keys":        {Description: "with the private keys; only over connections that nobody reads along", Schema: &huma.Schema{Type: "boolean"}},
	"force":       {Description: "go on although other objects depend on what is changed or deleted", Schema: &huma.Schema{Type: "boolean"}},
	"against":     {Description: "revision to compare with; default: the one before", Schema: &huma.Schema{Type: "integer"}},
	"inactive":    {Description: "true: only those who may not log in; false: only the others", Schema: &huma.Schema{Type: "boolean"}},
	"org_id":      {Description: "organisation that the call is about; default: the first", Schema: text()},
	"object_kind": {Description: "only what was done to objects of this kind", Schema: text()},
	"object_id":   {Description: "only what was done to this object", Schema: text()},
	"actor":       {Description: "only what this actor did", Schema: text()},
	"wait":        {Description: "how long to wait for a change, at most 1m", Schema: &huma.Schema{Type: "string", Examples: []any{"30s"}}},

	"apply": {Description: "store what is found; false: only say what would change", Schema: &huma.Schema{Type: "boolean", Default: true}},
	"hash":  {Description: "SHA-256 of one of the schemas that the API had; default: the present one", Schema: text()},

	"developer":      {Description: "only those of the developer with this id", Schema: text()},
	"webhook":        {Description: "only those to the webhook with this id", Schema: text()},
	"delivery_state": {Description: "only those in this state", Schema: &huma.Schema{Type: "string", Enum: []any{"pending", "done", "failed", "kept"}}},

	"from":     {Description: "beginning of the range, as in RFC 3339 or in unix seconds", Schema: text()},
	"to":       {Description: "end of the range; default: now", Schema: text()},
	"days":     {Description: "how many days back", Schema: &huma.Schema{Type: "integer", Minimum: new(1.0), Maximum: new(92.0), Default: 7}},
	"step":     {Description: "what a row is of; minutes are kept for days, hours for a year", Schema: &huma.Schema{Type: "string", Enum: []any{"minute", "hour", "day", "none"}}},
	"group_by": {Description: "what calls are told apart by: some of api, key, status and reason, separated by commas", Schema: text()},
	"api":      {Description: "only calls to the API with this id", Schema: text()},
	"key":      {Description: "only calls of the key with this hash; empty: only those without a known key", Schema: text()},
	"status":   {Description: "only calls that were answered so; 0: those without an answer", Schema: &huma.Schema{Type: "integer", Minimum: new(0.0), Maximum: new(999.0)}},
	"reason":   {Description: "only calls that were refused or failed for this reason", Schema: text()},

	"hashed":         {Description: "the path holds the hash and nothing else", Schema: &huma.Schema{Type: "boolean"}},
	"suppress_reset": {Description: "keep the key's used quota", Schema: &huma.Schema{Type: "boolean"}},
}

func text() *huma.Schema { return &huma.Schema{Type: "string"} }

const schemaPrefix = "#/components/schemas/"

// Route is what a description says of one route.
type Route struct {
	Method, Path string // braces in the path hold names of parameters
	Summary, Tag string

	Access string   // who may call it, as a sentence; "" asks for no credential
	Query  []string // names of parameters that this package knows
	Match  bool     // If-Match is heeded

	Body     any // zero value of what is sent; nil: nothing
	Optional bool
	Reply    any   // zero value of what is answered
	Plain    bool  // it is answered as text
	Failure  any   // zero value of what is answered to a call that went wrong
	Wrong    []int // statuses of failures
}

// schemaNames names the types of a document. Rooms call their types as they like,
// so that the second type of a name has its room in front.
func schemaNames() func(reflect.Type, string) string {
	named := make(map[string]reflect.Type)
	return func(t reflect.Type, hint string) string {
		name := huma.DefaultSchemaNamer(t, hint)
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if first, taken := named[name]; taken && first != t {
			room := path.Base(t.PkgPath())
			name = strings.ToUpper(room[:1]) + room[1:] + name
		}
		named[name] = t
		return name
	}
}

// Describe writes the document. No two routes may have a method and path in
// common.
func Describe(routes []Route, version string) ([]byte, error) {
	registry := huma.NewMapRegistry(schemaPrefix, schemaNames())
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Sluice admin", Version: version,
			Description: "Management of APIs, policies, keys and users. Every path is also served with a final slash.",
		},
		Paths: make(map[string]*huma.PathItem),
		Components: &huma.Components{Schemas: registry, SecuritySchemes: map[string]*huma.SecurityScheme{
			"key": {Type: "apiKey", In: "header", Name: "Authorization", Description: "a user's access key, bare or behind Bearer"},
		}},
	}
	for _, r := range routes {
		op, err := operation(&r, registry)
		if err != nil {
			return nil, err
		}
		item := doc.Paths[r.Path]
		if item == nil {
			item = new(huma.PathItem)
			doc.Paths[r.Path] = item
		}
		if err := place(item, r.Method, op); err != nil {
			return nil, err
		}
	}
	schemas := registry.Map()
	for _, name := range slices.Collect(maps.Keys(schemas)) { // spread may add others
		spread(registry, schemas[name], registry.TypeFromRef(schemaPrefix+name))
	}
	for _, schema := range schemas {
		loosen(schema)
	}
	return json.Marshal(doc)
}

// spread puts the members of what a struct writes inline in the place of the
// fields that lead to it.
func spread(registry huma.Registry, s *huma.Schema, t reflect.Type) {
	if t == nil || t.Kind() != reflect.Struct {
		return
	}
	for _, f := range reflect.VisibleFields(t) {
		if f.Tag.Get("json") != ",inline" || s.Properties[f.Name] == nil {
			continue
		}
		delete(s.Properties, f.Name)
		maps.Copy(s.Properties, registry.Schema(f.Type.Elem(), false, "").Properties)
	}
}

// loosen permits what definitions do not name, and asks for nothing: members
// that are left out have their zero value.
func loosen(s *huma.Schema) {
	if s.Type == huma.TypeObject && s.Properties != nil {
		s.AdditionalProperties, s.Required = true, nil
	}
}

func place(item *huma.PathItem, method string, op *huma.Operation) error {
	switch method {
	case http.MethodGet:
		item.Get = op
	case http.MethodPost:
		item.Post = op
	case http.MethodPut:
		item.Put = op
	case http.MethodDelete:
		item.Delete = op
	default:
		return fmt.Errorf("%s %s: no such method in a description", method, op.Path)
	}
	return nil
}

func operation(r *Route, registry huma.Registry) (*huma.Operation, error) {
	op := &huma.Operation{
		Method: r.Method, Path: r.Path, OperationID: operationID(r), Summary: r.Summary, Tags: []string{r.Tag},
		Responses: map[string]*huma.Response{"200": response("", r.Reply, registry)},
	}
	if r.Plain {
		op.Responses["200"].Content = map[string]*huma.MediaType{"text/plain": {Schema: text()}}
	}
	for _, name := range pathParameters.FindAllStringSubmatch(r.Path, -1) {
		op.Parameters = append(op.Parameters, &huma.Param{Name: name[1], In: "path", Required: true, Schema: text()})
	}
	for _, name := range r.Query {
		known := parameters[name]
		if known == nil {
			return nil, fmt.Errorf("%s %s: query parameter %s is not documented", r.Method, r.Path, name)
		}
		p := *known
		p.Name, p.In = name, "query"
		op.Parameters = append(op.Parameters, &p)
	}
	if r.Method == "POST" && r.Access != "" {
		op.Parameters = append(op.Parameters, &huma.Param{
			Name: "Idempotency-Key", In: "header", Schema: text(), Description: "at most 255 visible ASCII characters that name this call: sent again within a day it is not carried out again, but answered as it was",
		})
	}
	if r.Match {
		op.Parameters = append(op.Parameters, &huma.Param{
			Name: "If-Match", In: "header", Schema: text(), Description: "ETag of the object as the caller saw it; another version is answered with 409",
		})
	}
	if r.Body != nil {
		op.RequestBody = &huma.RequestBody{Content: content(r.Body, registry), Required: !r.Optional}
	}
	if r.Access != "" {
		op.Security = []map[string][]string{{"key": {}}}
		op.Description = r.Access
	}
	for _, status := range r.Wrong {
		op.Responses[strconv.Itoa(status)] = failure(r, status, registry)
	}
	return op, nil
}

var pathParameters = regexp.MustCompile(`\{(\w+)\}`)

// operationID names an operation by method and path: get-api-apis-id.
func operationID(r *Route) string {
	return strings.ToLower(r.Method) + strings.NewReplacer("/", "-", "{", "", "}", "", ".", "-").Replace(r.Path)
}

func failure(r *Route, status int, registry huma.Registry) *huma.Response {
	if status == http.StatusNotModified {
		return &huma.Response{Description: http.StatusText(status)}
	}
	return response(http.StatusText(status), r.Failure, registry)
}

func response(description string, reply any, registry huma.Registry) *huma.Response {
	if description == "" {
		description = http.StatusText(http.StatusOK)
	}
	return &huma.Response{Description: description, Content: content(reply, registry)}
}

func content(value any, registry huma.Registry) map[string]*huma.MediaType {
	t := reflect.TypeOf(value)
	return map[string]*huma.MediaType{"application/json": {Schema: registry.Schema(t, true, t.Name())}}
}
