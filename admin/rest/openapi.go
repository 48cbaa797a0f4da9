package rest

import (
	"cmp"
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

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/reference"
)

// parameters documents every query parameter, by name.
var parameters = map[string]*huma.Param{
	"view":  {Description: "Form of the list. row: rows of at most 1 KB in place of whole objects. Default: whole objects.", Schema: &huma.Schema{Type: "string", Enum: []any{"row"}}},
	"kind":  {Description: "Only APIs of this kind; with view=row.", Schema: &huma.Schema{Type: "string", Enum: []any{"graphql", "rest"}}},
	"auth":  {Description: "Only APIs whose callers authenticate so; with view=row.", Schema: &huma.Schema{Type: "string", Enum: []any{"keyless", "token", "basic", "jwt", "oauth", "mtls"}}},
	"label": {Description: "Only objects with this tag; with view=row.", Schema: textSchema()},

	"p":           {Description: "Number of the page, from 1. A negative number asks for everything, where the list permits it.", Schema: &huma.Schema{Type: "integer", Default: 1}},
	"page_size":   {Description: "Objects on a page. Default: the setting admin.page_size, or what the list has of its own.", Schema: &huma.Schema{Type: "integer", Minimum: new(1.0), Maximum: new(500.0)}},
	"q":           {Description: "Part of a name in any case, or a whole id; with view=row part of name, path, host or id; for keys the beginning of alias or hash.", Schema: textSchema()},
	"sort":        {Description: "Order of the list; a hyphen in front is descending. listen_path is for rows of APIs, and rows of keys have name and created_at.", Schema: &huma.Schema{Type: "string", Enum: []any{"name", "-name", "created_at", "-created_at", "updated_at", "-updated_at", "listen_path", "-listen_path"}, Default: "name"}},
	"active":      {Description: "true: only active objects; false: only those that are not. Default: both.", Schema: &huma.Schema{Type: "boolean"}},
	"policy_ids":  {Description: "Only policies with these ids, separated by commas.", Schema: textSchema()},
	"state":       {Description: "Only objects in this state: policies that are active, draft or deny, key requests that are pending, approved or rejected.", Schema: &huma.Schema{Type: "string", Enum: []any{"active", "draft", "deny", "pending", "approved", "rejected"}}},
	"approved":    {Description: "true: only approved requests; false: only the others. Default: both.", Schema: &huma.Schema{Type: "boolean"}},
	"by_user":     {Description: "Only requests of the developer with this id.", Schema: textSchema()},
	"for_plan":    {Description: "Only requests for the policy with this id.", Schema: textSchema()},
	"api_id":      {Description: "Only objects that name the API with this id.", Schema: textSchema()},
	"policy_id":   {Description: "Only objects that name the policy with this id.", Schema: textSchema()},
	"show":        {Description: "true: only what developers may see; false: only what they may not. Default: both.", Schema: &huma.Schema{Type: "boolean"}},
	"doc_type":    {Description: "Only documents of this kind.", Schema: &huma.Schema{Type: "string", Enum: []any{"openapi", "graphql", "markdown"}}},
	"keys":        {Description: "Whether the answer has the private keys; only over encrypted connections.", Schema: &huma.Schema{Type: "boolean"}},
	"reset_quota": {Description: "Whether the organisation's quota begins anew.", Schema: &huma.Schema{Type: "boolean"}},
	"force":       {Description: "Whether the call goes on although other objects depend on what is changed or deleted.", Schema: &huma.Schema{Type: "boolean"}},
	"strict":      {Description: "Whether an object with members that are kept and have no effect is refused; the member strict of the body does the same.", Schema: &huma.Schema{Type: "boolean"}},
	"report":      {Description: "Whether a faulty object is answered with 200, Status Error and the problems, in place of 400.", Schema: &huma.Schema{Type: "boolean"}},
	"against":     {Description: "Number of the revision to compare with. Default: the one before.", Schema: &huma.Schema{Type: "integer"}},
	"path":        {Description: "Path of a member, such as proxy.listen_path or access_rights[\"orders\"].versions. Default: the whole object.", Schema: textSchema()},
	"revision":    {Description: "Number of the revision as of which the question is answered. Default: the newest.", Schema: &huma.Schema{Type: "integer"}},
	"inactive":    {Description: "true: only developers who may not log in; false: only the others. Default: both.", Schema: &huma.Schema{Type: "boolean"}},
	"org_id":      {Description: "Id of the organisation that the call is about. Default: that of the caller, or that of the portal (setting portal.organisation).", Schema: textSchema()},
	"object_kind": {Description: "Only what was done to objects of this kind, such as api, policy, key or user.", Schema: textSchema()},
	"object_id":   {Description: "Only what was done to the object with this id.", Schema: textSchema()},
	"actor":       {Description: "Only what the actor with this name did, such as ada@example.com.", Schema: textSchema()},
	"wait":        {Description: "How long to wait for a change, at most 1m. Default: the answer comes at once.", Schema: &huma.Schema{Type: "string", Examples: []any{"30s"}}},
	"position":    {Description: "Member position of the last answer; empty at first.", Schema: &huma.Schema{Type: "string"}},

	"apply": {Description: "true: what is found is stored; false: the answer says what would change, and nothing is stored.", Schema: &huma.Schema{Type: "boolean", Default: true}},
	"hash":  {Description: "SHA-256 of one of the schemas that the API had. Default: the present one.", Schema: textSchema()},

	"policy":   {Description: "Id of the policy, as a key with it alone would have it.", Schema: textSchema()},
	"key_hash": {Description: "Hash of the key.", Schema: textSchema()},
	"type":     {Description: "Name of a type of the schema. Default: all types.", Schema: textSchema()},
	"key_id":   {Description: "Id of the developer's own key; left out for an API that asks for none.", Schema: textSchema()},

	"gateway":      {Description: "Only what the gateway with this name has.", Schema: textSchema()},
	"after":        {Description: "Member next of the page before. Default: the first page.", Schema: textSchema()},
	"phase":        {Description: "Only streams in this phase at a gateway.", Schema: &huma.Schema{Type: "string", Enum: []any{"starting", "running", "waiting", "reconnecting", "failing", "draining", "stopped"}}},
	"code":         {Description: "Code with which the connection is closed: 1000, after which clients do not connect again on their own; 1012, after which they do; 4403, forbidden.", Schema: &huma.Schema{Type: "integer", Enum: []any{1000, 1012, 4403}, Default: 1000}},
	"close_reason": {Description: "Reason that the client is given, at most 123 bytes. Default: none.", Schema: textSchema()},

	"developer":      {Description: "Only messages about the developer with this id.", Schema: textSchema()},
	"webhook":        {Description: "Only messages to the webhook with this id.", Schema: textSchema()},
	"delivery_state": {Description: "Only messages in this state.", Schema: &huma.Schema{Type: "string", Enum: []any{"pending", "done", "failed", "kept"}}},

	"from":      {Description: "Beginning of the range, as in RFC 3339 or in Unix seconds.", Schema: textSchema()},
	"to":        {Description: "End of the range, as in RFC 3339 or in Unix seconds. Default: now.", Schema: textSchema()},
	"days":      {Description: "Number of days that the range goes back.", Schema: &huma.Schema{Type: "integer", Minimum: new(1.0), Maximum: new(92.0), Default: 7}},
	"since":     {Description: "Only what came at this time or later, as in RFC 3339.", Schema: textSchema()},
	"limit":     {Description: "Number of the newest requests to take.", Schema: &huma.Schema{Type: "integer", Minimum: new(1.0)}},
	"step":      {Description: "Length of time that a row is of; minutes are kept for days, hours for a year.", Schema: &huma.Schema{Type: "string", Enum: []any{"minute", "hour", "day", "none"}}},
	"group_by":  {Description: "What calls are grouped by: some of api, key, status and reason, separated by commas. Default: all calls are one group.", Schema: textSchema()},
	"as_policy": {Description: "Id of a policy, also of one that the batch creates: callers with a key have it alone under the changed configuration, in place of their own rights; only requests to APIs that it names are compared.", Schema: textSchema()},
	"api":       {Description: "Only calls to the API with this id.", Schema: textSchema()},
	"key":       {Description: "Only calls of the key with this hash; empty: only those without a known key.", Schema: textSchema()},
	"status":    {Description: "Only calls that were answered with this HTTP status; 0: those without an answer.", Schema: &huma.Schema{Type: "integer", Minimum: new(0.0), Maximum: new(999.0)}},
	"reason":    {Description: "Only calls that were refused or failed for this reason, such as rate_limit.", Schema: textSchema()},

	"own":            {Description: "Whether the answer has the key's own limits, also where those of its policies take their place, and what is stored of its quotas.", Schema: &huma.Schema{Type: "boolean"}},
	"hashed":         {Description: "Whether the path holds the hash of a key and nothing else.", Schema: &huma.Schema{Type: "boolean"}},
	"suppress_reset": {Description: "Whether the key's used quota stays.", Schema: &huma.Schema{Type: "boolean"}},
}

// inPath documents the parameters of paths, by the part of the path in front of them.
var inPath = map[string]string{
	"acme":          "Name of the entry: the first 16 hexadecimal digits of the SHA-256 of the directory's URL, then account, certificate, http or alpn and, unless it is an account, the domain or token.",
	"apis":          "Id of the API.",
	"approve":       "Id of the key request.",
	"catalogue":     "Id of the catalogue entry.",
	"certs":         "Id of the certificate: the organisation, then its SHA-256.",
	"connections":   "Id of the connection.",
	"deliveries":    "Id of the message.",
	"developers":    "Id of the developer.",
	"documentation": "Id of the document.",
	"domains":       "Domain of gateway.acme.domains.",
	"entries":       "Id of the catalogue entry.",
	"gateways":      "Name of the gateway.",
	"hooks":         "Id of the webhook.",
	"keys":          "Hash or custom id of the key, or the key itself; in the portal its key_id.",
	"mailbox":       "Id of the letter.",
	"oauth-clients": "Id of the OAuth client.",
	"orgs":          "Id of the organisation.",
	"pages":         "Last part of the page's path.",
	"password":      "Id of the developer.",
	"policies":      "Id of the policy.",
	"refusals":      "X-Request-Id of the refused request.",
	"reject":        "Id of the key request.",
	"replay":        "Id of the run.",
	"requests":      "Id of the key request.",
	"revisions":     "Number of the revision.",
	"routes":        "Id of the route.",
	"secrets":       "Name of the secret: at most 128 letters, digits, hyphens, underscores and full stops, beginning with a letter or digit.",
	"session":       "Id of the session.",
	"sessions":      "Id of the session.",
	"streams":       "Id of the API of event streams.",
	"users":         "Id of the user.",
	"webhooks":      "Id of the webhook.",
}

func textSchema() *huma.Schema { return &huma.Schema{Type: "string"} }

const schemaPrefix = "#/components/schemas/"

// schemaNames returns a function that names the types of a document: by their own
// names, and the second type of a name with that of its package in front.
func schemaNames() func(reflect.Type, string) string {
	named := make(map[string]reflect.Type)
	return func(t reflect.Type, hint string) string {
		name := huma.DefaultSchemaNamer(t, hint)
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if first, taken := named[name]; taken && first != t {
			pkg := path.Base(t.PkgPath())
			name = strings.ToUpper(pkg[:1]) + pkg[1:] + name
		}
		named[name] = t
		return name
	}
}

const credentials = "Access key of a user, access_key of a developer's session, or token of a gateway, bare or behind Bearer. " +
	"Pages of the admin send the cookie of POST /api/session in its place and, with calls that change something, its csrf_token as X-CSRF-Token."

// Describe returns the OpenAPI 3.1 document of the routes. No two of them may have
// both method and path in common. The comments of definitions and of sources are the
// descriptions of members.
func Describe(routes []Route, version string, sources ...reference.Source) ([]byte, error) {
	registry := huma.NewMapRegistry(schemaPrefix, schemaNames())
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Sluice admin", Version: version,
			Description: "Management of APIs, policies, keys and users. Every path is also served with a final slash.",
		},
		Paths: make(map[string]*huma.PathItem),
		Components: &huma.Components{Schemas: registry, SecuritySchemes: map[string]*huma.SecurityScheme{
			"key": {Type: "apiKey", In: "header", Name: "Authorization", Description: credentials},
		}},
	}
	for _, r := range routes {
		if r.Method == Update {
			continue
		}
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
	comments, err := reference.ReadComments(append(sources, reference.Definitions())...)
	if err != nil {
		return nil, err
	}
	sent := sentTypes(doc)
	names := slices.Sorted(maps.Keys(schemas))
	slices.SortStableFunc(names, func(a, b string) int { return first(sent[a]) - first(sent[b]) }) // inline members are shared
	for _, name := range names {
		schema, t := schemas[name], registry.TypeFromRef(schemaPrefix+name)
		shape(schema, t, sent[name])
		if t == nil || t.Kind() != reflect.Struct {
			continue
		}
		if err := leftOut(t); err != nil {
			return nil, err
		}
		describe(schema, t, comments, sent[name])
	}
	return json.Marshal(doc)
}

// first is 0 for what comes first, else 1.
func first(yes bool) int {
	if yes {
		return 0
	}
	return 1
}

// leftOut returns an error for a struct that embeds one with an unexported name: JSON has
// the members of that, and the schema lacks them.
func leftOut(t reflect.Type) error {
	for f := range t.Fields() {
		if f.Anonymous && !f.IsExported() && f.Type.Kind() == reflect.Struct {
			return fmt.Errorf("%s: the name of the embedded %s must be exported", t, f.Name)
		}
	}
	return nil
}

// spread replaces the fields that a struct writes inline by the members of their types.
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

// describe gives the members of an object what their comments say; only what is sent has
// defaults. An object that may be written as a string is one or the other.
func describe(s *huma.Schema, t reflect.Type, comments *reference.Comments, sent bool) {
	short := false
	for _, m := range comments.Of(t) {
		short = short || m.Short()
		property := s.Properties[m.Name()]
		if property == nil || property.Description != "" || m.Text == "" {
			continue
		}
		property.Description = m.Text
		if property.Ref != "" { // has its own description otherwise
			continue
		}
		if sent {
			property.Default = m.Constant()
		}
		if len(m.Example) > 0 {
			property.Examples = []any{m.Example}
		}
		bound(property, &m)
	}
	if short {
		object := *s
		*s = huma.Schema{OneOf: []*huma.Schema{{Type: huma.TypeString}, &object}}
	}
}

// bound states which numbers, texts and counts a member may have. A number that is not set
// is 0, also where the least one is above.
func bound(s *huma.Schema, m *reference.Member) {
	b := m.Bounds
	if b == nil {
		return
	}
	switch {
	case s.Type == huma.TypeNumber || s.Type == huma.TypeInteger:
		s.Maximum = b.Most
		if b.Least != nil && *b.Least <= 0 {
			s.Minimum = b.Least
		}
	case b.Most == nil:
	case s.Type == huma.TypeString:
		s.MaxLength = new(int(*b.Most))
	case s.Type == huma.TypeArray:
		s.MaxItems = new(int(*b.Most))
	case s.Type == huma.TypeObject:
		s.MaxProperties = new(int(*b.Most))
	}
}

// shape says which members an object has. What is answered has all that are not marked to
// be left out, and no others; what is sent requires none, as members that are left out have
// their zero value; and definitions keep members that they do not know.
func shape(s *huma.Schema, t reflect.Type, sent bool) {
	if s.Type != huma.TypeObject || s.Properties == nil {
		return
	}
	open := keepsUnknown(t)
	s.AdditionalProperties = open
	if open || sent {
		s.Required = nil
	}
}

// keepsUnknown reports whether an object has members beyond the fields of its struct.
func keepsUnknown(t reflect.Type) bool {
	if t == nil || t.Kind() != reflect.Struct {
		return true
	}
	if t.Implements(reflect.TypeFor[json.Marshaler]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) {
		return true
	}
	for f := range t.Fields() {
		if f.Type == reflect.TypeFor[definition.Unknown]() {
			return true
		}
	}
	return false
}

// sentTypes returns the names of the types that bodies of calls consist of.
func sentTypes(doc *huma.OpenAPI) map[string]bool {
	sent := make(map[string]bool)
	var walk func(s *huma.Schema)
	walk = func(s *huma.Schema) {
		if s == nil {
			return
		}
		if name, ok := strings.CutPrefix(s.Ref, schemaPrefix); ok && !sent[name] {
			sent[name] = true
			walk(doc.Components.Schemas.Map()[name])
		}
		for _, property := range s.Properties {
			walk(property)
		}
		walk(s.Items)
		if values, ok := s.AdditionalProperties.(*huma.Schema); ok {
			walk(values)
		}
		for _, one := range slices.Concat(s.OneOf, s.AnyOf, s.AllOf) {
			walk(one)
		}
	}
	for _, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Post, item.Put, item.Delete} {
			if op != nil && op.RequestBody != nil {
				for _, media := range op.RequestBody.Content {
					walk(media.Schema)
				}
			}
		}
	}
	return sent
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
		Responses: make(map[string]*huma.Response),
	}
	done := response(http.StatusText(cmp.Or(r.Status, http.StatusOK)), r.Reply, registry)
	op.Responses[strconv.Itoa(cmp.Or(r.Status, http.StatusOK))] = done
	if other := cmp.Or(r.Rows, r.Or); other != nil {
		either := []*huma.Schema{done.Content["application/json"].Schema, content(other, registry)["application/json"].Schema}
		done.Content = map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{AnyOf: either}}}
	}
	switch {
	case strings.HasPrefix(r.Type, "text/"):
		done.Content = map[string]*huma.MediaType{r.Type: {Schema: textSchema()}}
	case r.Type != "":
		done.Content = map[string]*huma.MediaType{r.Type: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}
	case r.Events:
		done.Content["text/event-stream"] = &huma.MediaType{Schema: textSchema()}
	}
	for _, name := range pathParameters.FindAllStringSubmatch(r.Path, -1) {
		op.Parameters = append(op.Parameters, &huma.Param{Name: name[2], In: "path", Required: true, Description: inPath[name[1]], Schema: textSchema()})
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
	if r.Method == http.MethodPost && r.Role != Anyone {
		op.Parameters = append(op.Parameters, &huma.Param{
			Name: "Idempotency-Key", In: "header", Schema: textSchema(), Description: "Name of this call, at most 255 visible ASCII characters: sent again within a day it is not carried out again, but answered as it was.",
		})
	}
	if r.Match {
		op.Parameters = append(op.Parameters, &huma.Param{
			Name: "If-Match", In: "header", Schema: textSchema(), Description: "ETag of the object as the caller saw it; if the object has changed since, the call is answered with 409. Default: any version.",
		})
	}
	if r.Body != nil {
		op.RequestBody = &huma.RequestBody{Content: content(r.Body, registry), Required: !r.Empty}
	}
	if r.Form != nil {
		schema := content(r.Form, registry)["application/json"]
		op.RequestBody = &huma.RequestBody{Content: map[string]*huma.MediaType{"application/x-www-form-urlencoded": schema}, Required: true}
	}
	if sent := op.RequestBody; r.Media != "" && sent != nil {
		sent.Content = map[string]*huma.MediaType{r.Media: sent.Content["application/json"]}
	}
	wrong := r.Wrong
	if r.Role != Anyone {
		op.Security = []map[string][]string{{"key": {}}}
		wrong = append([]int{401, 403, 429, 503}, wrong...)
	}
	op.Description = r.access()
	for _, status := range wrong {
		op.Responses[strconv.Itoa(status)] = failure(r, status, registry)
	}
	return op, nil
}

// access says in sentences who may call the route.
func (r *Route) access() string {
	text := "Needs no credential."
	if r.Role != Anyone {
		text = "Needs the role " + string(r.Role) + "."
	}
	if r.Gateway {
		text += " Gateways may call it."
	}
	if r.Developer {
		text += " Developers may call it for what is theirs."
	}
	return text
}

var pathParameters = regexp.MustCompile(`([^/]+)/\{(\w+)\}`)

// operationID names an operation by method and path: get-api-apis-id.
func operationID(r *Route) string {
	return strings.ToLower(r.Method) + strings.NewReplacer("/", "-", "{", "", "}", "", ".", "-").Replace(r.Path)
}

// failures says what each status of a failure means.
var failures = map[int]string{
	http.StatusNotModified:           "Nothing has changed since the answer whose ETag If-None-Match names.",
	http.StatusBadRequest:            "What was sent is faulty: Errors and Problems say what, and where.",
	http.StatusUnauthorized:          "The credential is missing, unknown or at its end.",
	http.StatusForbidden:             "The caller may not do this.",
	http.StatusNotFound:              "There is no such object.",
	http.StatusConflict:              "The object is not at the version of If-Match, or other objects stand against the change.",
	http.StatusGone:                  "There is no such call any more; Message names the one to use.",
	http.StatusRequestEntityTooLarge: "The body is too large.",
	http.StatusUnsupportedMediaType:  "The body has another content type than it must have.",
	http.StatusTooManyRequests:       "There were too many calls; Retry-After says when to call again.",
	http.StatusBadGateway:            "Another server did not answer as it should.",
	http.StatusServiceUnavailable:    "The admin cannot answer at the moment; Retry-After says when to call again.",
	http.StatusGatewayTimeout:        "The call did not end in time.",
}

func failure(r *Route, status int, registry huma.Registry) *huma.Response {
	if status == http.StatusNotModified {
		return &huma.Response{Description: failures[status]}
	}
	return response(failures[status], cmp.Or(r.Fault, any(Envelope{})), registry)
}

func response(description string, reply any, registry huma.Registry) *huma.Response {
	return &huma.Response{Description: description, Content: content(reply, registry)}
}

func content(value any, registry huma.Registry) map[string]*huma.MediaType {
	t := reflect.TypeOf(value)
	return map[string]*huma.MediaType{"application/json": {Schema: registry.Schema(t, true, t.Name())}}
}
