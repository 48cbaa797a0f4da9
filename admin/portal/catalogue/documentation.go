package catalogue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/sluicegate/sluice/admin/portal/clean"
	"github.com/sluicegate/sluice/admin/store"
)

// Documentation is a document as developers see it: one of its last three members.
type Documentation struct {
	// Id of the document.
	ID string `json:"id"`
	// Name of the document.
	Name string `json:"name"`
	// Kind of the document, which says which of the other members it has.
	Kind string `json:"doc_type" enum:"openapi,graphql,markdown"`
	// Text of a markdown document as sanitised HTML.
	HTML string `json:"html,omitempty"`
	// Schema of a graphql document in SDL.
	Schema string `json:"schema,omitempty"`
	// Description of an openapi document; every description in it is sanitised HTML.
	OpenAPI json.RawMessage `json:"openapi,omitempty"`

	listenPath string // of the API, without a final slash
}

// Show returns a cleaned document with the gateway's addresses of an API, "" for the
// document's own API, or store.ErrNotFound.
func (s *Documents) Show(ctx context.Context, org, id, api string) (*Documentation, error) {
	row, err := s.store.CleanDocument(ctx, org, id, clean.Edition)
	if err != nil {
		return nil, err
	}
	if row.Edition != clean.Edition {
		if err := s.renew(ctx, org, &row); err != nil {
			return nil, err
		}
	}
	if api == "" {
		api = row.APIID
	}
	place, err := s.placeOf(ctx, org, api)
	if err != nil {
		return nil, err
	}
	text := row.Clean
	for _, origin := range place.origins {
		text = clean.HideOrigin(text, origin)
	}
	shown := &Documentation{ID: row.ID, Name: row.Name, Kind: row.Kind, listenPath: place.listenPath}
	switch clean.Kind(row.Kind) {
	case clean.OpenAPI:
		shown.OpenAPI, err = place.openAPI(text)
	case clean.GraphQL:
		shown.Schema = text
	default:
		shown.HTML = text
	}
	return shown, err
}

// renew cleans a document again by the rules of this release. If another release does the
// same, the newer result stays.
func (s *Documents) renew(ctx context.Context, org string, row *store.CleanDocument) error {
	text, err := s.clean(ctx, clean.Kind(row.Kind), row.Source)
	if err != nil {
		return fmt.Errorf("cleaning the stored document %s anew: %w", row.ID, err)
	}
	row.Clean, row.Edition = text, clean.Edition
	return s.store.InTx(ctx, func(tx *store.Tx) error { return tx.RenewDocument(ctx, org, row) })
}

// A place is where developers reach an API, and what they must not know of it.
type place struct {
	host    string // "": the gateway's
	path    string // that operations are below: begins with a slash and does not end with one; "" for the root
	origins []string
	known   bool

	listenPath string // like path
}

// placeOf returns the place of an API; one that is not there has none.
func (s *Documents) placeOf(ctx context.Context, org, api string) (*place, error) {
	p := new(place)
	if api == "" {
		return p, nil
	}
	row, err := s.store.APIByID(ctx, org, api)
	if errors.Is(err, store.ErrNotFound) {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	var def struct {
		Proxy struct {
			Target string `json:"target_url"`
			Others any    `json:"target_list"`
			Strip  bool   `json:"strip_listen_path"`
			Listen string `json:"listen_path"`
		} `json:"proxy"`
		Streaming struct {
			Streams map[string]json.RawMessage `json:"streams"`
		} `json:"x-svc-streaming"`
	}
	if err := json.Unmarshal(row.Definition, &def); err != nil {
		return nil, fmt.Errorf("reading API %s: %w", api, err)
	}
	p.known, p.host, p.listenPath = true, row.Domain, strings.TrimRight(def.Proxy.Listen, "/")
	if def.Proxy.Strip || len(def.Streaming.Streams) > 0 { // otherwise the paths of the upstream include the listen path
		p.path = p.listenPath
	}
	p.hide(def.Proxy.Target)
	p.hide(def.Proxy.Others)
	return p, nil
}

// hide collects the addresses of upstreams in a JSON value.
func (p *place) hide(value any) {
	switch v := value.(type) {
	case string:
		if u, err := url.Parse(v); err == nil && u.Host != "" && len(p.origins) < 20 {
			p.origins = append(p.origins, u.Scheme+"://"+u.Host)
		}
	case []any:
		for _, each := range v {
			p.hide(each)
		}
	case map[string]any:
		for _, each := range v {
			p.hide(each)
		}
	}
}

// openAPI returns a clean description whose servers are the gateway's address of
// the API. Where the API is unknown it names none, which is the site that shows it.
func (p *place) openAPI(text string) (json.RawMessage, error) {
	rest, found := strings.CutPrefix(text, "{")
	if !found || !p.known {
		return json.RawMessage(text), nil
	}
	path := p.path
	if path == "" {
		path = "/"
	}
	var servers any
	if strings.HasPrefix(rest, `"swagger"`) {
		second := map[string]any{"basePath": path}
		if p.host != "" {
			second["host"] = p.host
		}
		servers = second
	} else {
		address := path
		if p.host != "" {
			address = "//" + p.host + path
		}
		servers = map[string]any{"servers": []any{map[string]any{"url": address}}}
	}
	head, err := json.Marshal(servers)
	if err != nil {
		return nil, fmt.Errorf("writing the servers of a description: %w", err)
	}
	return json.RawMessage(string(head[:len(head)-1]) + "," + rest), nil
}

// writeDocumentation returns a document as JSON in which no byte has a meaning in HTML.
func writeDocumentation(d *Documentation) (json.RawMessage, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("writing a document: %w", err)
	}
	return text, nil
}
