package admin

import (
	"context"
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/openapi"
	"github.com/sluicegate/sluice/internal/streamstate"
)

func (s *Server) streamRoutes() []rest.Route {
	const (
		all = "/api/apis/streams"
		one = all + "/{id}"
	)
	return []rest.Route{
		{
			Method: "POST", Path: all, Summary: "Create an API of event streams from its OpenAPI document, in JSON or YAML", Tag: "APIs", Role: rest.Editor, Gateway: true,
			Query: strictly, Body: streamDocument{}, Media: openapi.MediaType, Reply: rest.Envelope{}, Wrong: []int{400, 409, 413}, Handle: s.withStreams(s.createStreams),
		},
		{
			Method: "GET", Path: one, Summary: "Get the OpenAPI document of an API of event streams", Tag: "APIs", Role: rest.Viewer, Gateway: true,
			Reply: streamDocument{}, Wrong: []int{404}, Handle: s.withStreams(s.getStreams),
		},
		{
			Method: "PUT", Path: one, Summary: "Replace the OpenAPI document of an API of event streams", Tag: "APIs", Role: rest.Editor, Gateway: true,
			Query: strictly, Body: streamDocument{}, Media: openapi.MediaType, Reply: rest.Envelope{}, Wrong: []int{400, 404, 409, 413}, Match: true, Handle: s.withStreams(s.updateStreams),
		},
		{
			Method: "DELETE", Path: one, Summary: "Delete an API of event streams", Tag: "APIs", Role: rest.Editor, Gateway: true,
			Query: []string{"force"}, Reply: rest.Envelope{}, Wrong: []int{404, 409}, Match: true, Handle: s.withStreams(s.deleteStreams),
		},
		{
			Method: "GET", Path: one + "/status", Summary: "Tell how the gateways run the streams of an API, with each connector and processor", Tag: "APIs", Role: rest.Viewer,
			Query: []string{"after", "page_size"}, Reply: runningStreams{}, Wrong: []int{400, 404}, Handle: s.withStreams(s.streamStatus),
		},
		{
			Method: "POST", Path: one + "/try", Summary: "Run the processors of a stream on a message, without its inputs and outputs", Tag: "APIs", Role: rest.Editor,
			Body: streamTrial{}, Reply: streamstate.Tried{}, MaxBody: maxTrialBody, Within: playedWithin + 5*time.Second, Wrong: []int{400, 404, 413, 415}, Handle: s.withStreams(s.tryStream),
		},
		{
			Method: "GET", Path: "/api/streams", Summary: "List the event streams that gateways run, by API and name", Tag: "Gateways", Role: rest.Viewer,
			Query: []string{"api_id", "phase", "after", "page_size"}, Reply: streamList{}, Wrong: []int{400}, Handle: s.withStreams(s.listStreams),
		},
	}
}

// streamDocument is the OpenAPI document of an API of event streams.
type streamDocument struct {
	// Version of the specification: 3.0.x or 3.1.x.
	// Example: "3.0.3"
	OpenAPI string `json:"openapi"`
	// Title and version of the API, both required.
	// Example: {"title": "Orders", "version": "1.0.0"}
	Info map[string]any `json:"info"`
	// Paths for readers; what is served is in x-svc-streaming.
	// Example: {}
	Paths map[string]any `json:"paths"`
	// Components for readers; securitySchemes has the schemes that the API's authentication names.
	Components map[string]any `json:"components,omitempty"`
	// Info, server, upstream and middleware: what the API is called, where it is served, and who may
	// call it. Without authentication callers need a key; enabled: false is keyless.
	// Example: {"server": {"listenPath": {"value": "/orders/"}}}
	Gateway map[string]any `json:"x-svc-api-gateway"`
	// Streams of the API by name, under streams.
	Streaming map[string]any     `json:"x-svc-streaming"`
	Unknown   definition.Unknown `json:"-"`
}

// withStreams returns a handler that refuses calls while streams are not enabled.
func (s *Server) withStreams(handle rest.Handler) rest.Handler {
	return func(ctx context.Context, c *rest.Call) (any, error) {
		if !s.deps.Streaming {
			return nil, rest.Refuse(fasthttp.StatusForbidden, "Event streams are not enabled: set streaming.enabled to true, here and in the gateways")
		}
		return handle(ctx, c)
	}
}

const noStreams = "The API has no streams; /api/apis/{id} has its definition"

// storedStreams returns the API of the path, which must have streams.
func (s *Server) storedStreams(ctx context.Context, c *rest.Call, missing string) (store.API, error) {
	if err := s.locate(ctx, c, store.APIObject, c.Param("id")); err != nil {
		return store.API{}, err
	}
	row, err := s.deps.Store.APIByID(ctx, c.Who.Org, c.Param("id"))
	if err == nil && !openapi.HasStreams(row.Definition) {
		return row, rest.NotFound(noStreams)
	}
	return row, rest.Missing(err, missing)
}

func (s *Server) getStreams(ctx context.Context, c *rest.Call) (any, error) {
	row, err := s.storedStreams(ctx, c, "Could not retrieve API detail")
	if err != nil {
		return nil, err
	}
	document, err := openapi.Render(row.Definition)
	if err != nil {
		return nil, err
	}
	c.SetVersion(row.Version)
	return document, nil
}

func (s *Server) createStreams(ctx context.Context, c *rest.Call) (any, error) {
	given, err := s.readStreams(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	api := given.API
	if api.ID == "" {
		api.ID = rest.NewID()
	}
	err = s.publish(ctx, c, func(ctx context.Context, change *store.Change) error { return change.CreateAPI(ctx, api) })
	if err != nil {
		return nil, err
	}
	c.SetVersion(1)
	answer := rest.Done("API created", api.ID)
	answer.ID, answer.Warnings = api.ID, given.warnings
	return answer, nil
}

func (s *Server) updateStreams(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	document, err := s.readDocument(ctx, c)
	if err != nil {
		return nil, err
	}
	stored, err := s.storedStreams(ctx, c, "API definition does not exist")
	if err != nil {
		return nil, err
	}
	given, err := parseStreams(c, document, stored.Definition)
	if err != nil {
		return nil, err
	}
	// What the document does not say was taken over, and must still be what is stored.
	if have == 0 {
		have = stored.Version
	}
	api := given.API
	if api.ID == "" {
		api.ID = stored.ID
	} else if api.ID != stored.ID {
		return nil, rest.BadRequest("x-svc-api-gateway.info.id: must be " + stored.ID + ", as in the path, or be left out")
	}
	var version int64
	err = s.publish(ctx, c, func(ctx context.Context, change *store.Change) error {
		version, err = change.UpdateAPI(ctx, api, have)
		return err
	})
	if err != nil {
		return nil, rest.Missing(err, "API definition does not exist")
	}
	c.SetVersion(version)
	answer := rest.Done("API updated", nil)
	answer.ID, answer.Warnings = api.ID, given.warnings
	return answer, nil
}

func (s *Server) deleteStreams(ctx context.Context, c *rest.Call) (any, error) {
	if _, err := s.storedStreams(ctx, c, "Could not retrieve API detail"); err != nil {
		return nil, err
	}
	return s.deleteAPI(ctx, c)
}

// readStreams reads the document of a new API.
func (s *Server) readStreams(ctx context.Context, c *rest.Call, stored []byte) (*givenAPI, error) {
	document, err := s.readDocument(ctx, c)
	if err != nil {
		return nil, err
	}
	return parseStreams(c, document, stored)
}

// readDocument reads the document in the body, and makes the call one about the
// organisation that it names.
func (s *Server) readDocument(ctx context.Context, c *rest.Call) (*openapi.Document, error) {
	if size := len(c.HTTP.Request.Body()); size > openapi.MaxSize {
		return nil, rest.Refuse(fasthttp.StatusRequestEntityTooLarge, "The document is larger than 1 MiB")
	}
	body, err := c.Body()
	if err != nil {
		return nil, err
	}
	document, err := openapi.Read(body)
	if err != nil {
		return nil, err
	}
	return document, s.claim(ctx, c, document.Org())
}

// parseStreams parses a document to be saved. Problems have the paths of the document.
// stored is the definition that it replaces, or nil.
func parseStreams(c *rest.Call, document *openapi.Document, stored []byte) (*givenAPI, error) {
	text, problems, err := document.Definition(stored)
	if err != nil {
		return nil, err
	}
	api, warnings, err := parseInner(c, text, stored, false)
	if wrong, ok := errors.AsType[*definition.Problems](err); ok {
		problems = document.Add(problems, *wrong)
	} else if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return nil, &problems
	}
	return &givenAPI{API: api, warnings: warnings}, nil
}
