// Package introspect fetches the schema of a GraphQL upstream by introspection.
package introspect

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/dialguard"
	"github.com/sluicegate/sluice/internal/graphql/sdl"
)

// MaxAnswer is the largest response of an upstream, in bytes.
const MaxAnswer = 16 << 20

// maxMessage bounds quotations of an upstream's messages.
const maxMessage = 200

// A Source describes where and how to fetch a schema.
type Source struct {
	URL       string            // http or https
	Headers   map[string]string // added to each call; values may be secrets, and never appear in errors
	TLS       *tls.Config       // of https; nil: the system's authorities, no client certificate
	Addresses dialguard.Policy  // which the upstream may have
	Timeout   time.Duration     // of all that is done; 0: 30 s
}

// Fetch returns the schema of an upstream in SDL. It sends the most complete query first,
// and simpler ones if the upstream does not support it. The error is *Error unless ctx
// ended.
func Fetch(ctx context.Context, from Source) (string, error) {
	data, err := call(ctx, &from, ask)
	if err != nil {
		return "", err
	}
	text, err := sdl.FromIntrospection(data)
	if err != nil {
		return "", &Error{Cause: NotGraphQL, Message: "what it says of its schema cannot be read: " + short(err.Error()), err: err}
	}
	return text, nil
}

// FetchSubgraph returns the schema for federation that an upstream reports, in SDL. The
// error is *Error unless ctx ended; of a GraphQL server that does not report one it has the
// cause NoSDL.
func FetchSubgraph(ctx context.Context, from Source) (string, error) {
	data, err := call(ctx, &from, func(ctx context.Context, client *http.Client, from *Source) (json.RawMessage, error) {
		return from.put(ctx, client, subgraphQuery, readSubgraph)
	})
	return string(data), err
}

// call checks the source, and has do call it within its time.
func call(ctx context.Context, from *Source, do func(context.Context, *http.Client, *Source) (json.RawMessage, error)) (json.RawMessage, error) {
	if from.Timeout <= 0 {
		from.Timeout = 30 * time.Second
	}
	if !strings.HasPrefix(from.URL, "http://") && !strings.HasPrefix(from.URL, "https://") {
		return nil, &Error{Cause: Unusable, Message: "its address must begin with http:// or https://"}
	}
	within, cancel := context.WithTimeout(ctx, from.Timeout)
	defer cancel()
	client := from.client()
	defer client.CloseIdleConnections()
	data, err := do(within, client, from)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("introspecting: %w", context.Cause(ctx))
	}
	return data, err
}

// ask sends the queries, the most complete first, until one succeeds.
func ask(ctx context.Context, client *http.Client, from *Source) (data json.RawMessage, err error) {
	for _, query := range queries {
		data, err = from.put(ctx, client, query, read)
		if refused, ok := errors.AsType[*Error](err); !ok || refused.Cause != Refused {
			return data, err
		}
	}
	return nil, err
}

// client returns an HTTP client for one fetch: without shared connections, proxies of the
// environment and redirects, which could leak the headers.
func (s *Source) client() *http.Client {
	dialer := &net.Dialer{Timeout: s.Timeout, ControlContext: s.Addresses.Control}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            dialling(dialer),
			TLSClientConfig:        s.TLS,
			TLSHandshakeTimeout:    s.Timeout,
			DisableCompression:     true, // no decompression, so that the limit holds
			MaxResponseHeaderBytes: 64 << 10,
			MaxIdleConnsPerHost:    1,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// put sends one query and reads the response.
func (s *Source) put(ctx context.Context, client *http.Client, query string, read func(*http.Response, []byte) (json.RawMessage, error)) (json.RawMessage, error) {
	body, err := json.Marshal(map[string]string{"query": query, "operationName": "Introspection"})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		return nil, &Error{Cause: Unusable, Message: "its address cannot be read", err: err}
	}
	req.Header.Set("Accept", "application/json, application/graphql-response+json;q=0.9")
	req.Header.Set("User-Agent", "sluice")
	for name, value := range s.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json") // overrides the configured headers
	resp, err := client.Do(req)
	if err != nil {
		return nil, unreachable(ctx, err, s.Timeout)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+1))
	switch {
	case len(answer) > MaxAnswer:
		return nil, &Error{Cause: TooLarge, Message: fmt.Sprintf("its answer is larger than %d MiB", MaxAnswer>>20)}
	case err != nil:
		return nil, unreachable(ctx, err, s.Timeout)
	}
	return read(resp, answer)
}

// read returns the schema in a response.
func read(resp *http.Response, answer []byte) (json.RawMessage, error) {
	var said struct {
		Data struct {
			Schema json.RawMessage `json:"__schema"`
		} `json:"data"`
		Errors []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	graphql := json.Unmarshal(answer, &said) == nil && (len(said.Errors) > 0 || len(said.Data.Schema) > 0)
	switch {
	case graphql && len(said.Data.Schema) > 0 && said.Data.Schema[0] == '{':
		return json.Marshal(map[string]json.RawMessage{"__schema": said.Data.Schema})
	case graphql && len(said.Errors) > 0:
		return nil, refused(resp.StatusCode, said.Errors[0].Message)
	}
	return nil, unreadable(resp, answer)
}

// readSubgraph returns the text of the schema for federation in a response.
func readSubgraph(resp *http.Response, answer []byte) (json.RawMessage, error) {
	var said struct {
		Data *struct {
			Service struct {
				SDL string `json:"sdl"`
			} `json:"_service"`
		} `json:"data"`
		Errors []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	graphql := json.Unmarshal(answer, &said) == nil
	denied := resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden
	switch {
	case graphql && said.Data != nil && said.Data.Service.SDL != "":
		return json.RawMessage(said.Data.Service.SDL), nil
	case graphql && len(said.Errors) > 0 && denied:
		return nil, refused(resp.StatusCode, said.Errors[0].Message)
	case graphql && len(said.Errors) > 0:
		return nil, &Error{Cause: NoSDL, Status: resp.StatusCode, Message: "it does not report its schema for federation, { _service { sdl } }: " + short(said.Errors[0].Message)}
	case graphql && said.Data != nil:
		return nil, &Error{Cause: NoSDL, Status: resp.StatusCode, Message: "its answer to { _service { sdl } } has no text"}
	}
	return nil, unreadable(resp, answer)
}

// unreadable returns the error for a response that has neither data nor errors.
func unreadable(resp *http.Response, answer []byte) *Error {
	switch {
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		return &Error{Cause: Denied, Status: resp.StatusCode, Message: "it answers " + resp.Status + ": it wants credentials, or others"}
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return &Error{Cause: BadStatus, Status: resp.StatusCode, Message: "it answers " + resp.Status + ", a redirection, which is not followed"}
	case resp.StatusCode != http.StatusOK:
		return &Error{Cause: BadStatus, Status: resp.StatusCode, Message: "it answers " + resp.Status}
	}
	return notGraphQL(resp, answer)
}

// notGraphQL returns the error for a response that is not GraphQL.
func notGraphQL(resp *http.Response, answer []byte) *Error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	e := &Error{Cause: NotGraphQL, Status: resp.StatusCode}
	switch {
	case len(bytes.TrimSpace(answer)) == 0:
		e.Message = "its answer is empty, which is no GraphQL answer"
	case json.Valid(answer):
		e.Message = `its answer is JSON without "data" or "errors", which is no GraphQL answer`
	case kind == "":
		e.Message = "its answer is not JSON, so it is no GraphQL answer"
	default:
		e.Message = "its answer is " + short(kind) + " and not JSON, so it is no GraphQL answer"
	}
	return e
}

// short shortens a foreign message to one line.
func short(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "?"), func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
	if len(text) <= maxMessage {
		return text
	}
	cut := maxMessage
	for cut > 0 && text[cut]&0xC0 == 0x80 {
		cut--
	}
	return text[:cut] + "…"
}
