package app

import (
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"net/http"

	countries "github.com/sluicegate/sluice/internal/sample"
)

// demoDescription describes the keyed API of the demo for developers.
//
//go:embed demo_openapi.yaml
var demoDescription string

// demoOffer is an entry of the demo's catalogue, with its documentation if it has any. Without
// a policy the API asks for no key.
type demoOffer struct {
	id, name, short, long string
	api, policy           string
	approval              bool // somebody decides on requests
	kind, document        string
}

// demoOffers are what the demo's portal offers.
func demoOffers() []demoOffer {
	return []demoOffer{
		{
			id: "hello", name: "Hello", short: "Says hello, and repeats what is sent to it.", api: demoKeyed, policy: demoPolicy,
			long: "A REST API to try the portal with: ask for access, get a key at once, call it, and watch what is left of its quota.",
			kind: "openapi", document: demoDescription,
		},
		{
			id: "countries", name: "Countries", short: "Countries, their languages and continents, by GraphQL.", api: demoGraph, policy: demoReader,
			long: "Queries may be four levels deep, and leave out the population of countries: neither the schema nor the documentation shows it.",
			kind: "graphql", document: countries.Schema,
		},
		{
			id: "countries-full", name: "Countries, in full", short: "All that there is about countries, by GraphQL.", api: demoGraph, policy: demoFull, approval: true,
			long: "With the population, and as deep as you like. Somebody decides on each request.",
			kind: "graphql", document: countries.Schema,
		},
		{
			id: "events", name: "Messages", short: "What one sends, the others receive at once.", api: demoEvents,
			long: "Event streams: post a message, and receive it as a server-sent event, over WebSocket or by polling. They ask for no key.",
		},
	}
}

// offer adds an entry to the catalogue, unless it is there.
func (s *seeder) offer(ctx context.Context, o demoOffer) error {
	err := s.call(ctx, http.MethodGet, "/api/portal/catalogue/entries/"+o.id, nil, nil)
	if !errors.Is(err, errAbsent) {
		return err
	}
	var made struct {
		ID string `json:"Message"`
	}
	if o.document != "" {
		document := object{"api_id": o.api, "name": o.name, "doc_type": o.kind, "documentation": base64.StdEncoding.EncodeToString([]byte(o.document))}
		if err := s.call(ctx, http.MethodPost, "/api/portal/documentation", document, &made); err != nil {
			return err
		}
	}
	return s.call(ctx, http.MethodPost, "/api/portal/catalogue/entries", object{
		"id": o.id, "name": o.name, "short_description": o.short, "long_description": o.long, "show": true,
		"api_id": o.api, "policy_id": o.policy, "is_keyless": o.policy == "", "documentation": made.ID, "version": "v1",
		"config": object{"override": true, "require_key_approval": o.approval},
	}, nil)
}
