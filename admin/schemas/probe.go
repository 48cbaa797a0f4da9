package schemas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluicegate/sluice/admin/portal/clean"
	"github.com/sluicegate/sluice/internal/introspect"
)

// Bounds of a probe.
const (
	probeWithin = 8 * time.Second
	maxDocument = 4 << 20 // bytes of an OpenAPI document
	maxHeaders  = 20
)

// The kinds of what a probe finds.
const (
	FoundGraphQL = "graphql"
	FoundOpenAPI = "openapi"
	FoundPlain   = "plain"
)

// A Found is what answers at an address.
type Found struct {
	// graphql: a GraphQL server answers; openapi: a server with an OpenAPI document does; plain: any
	// other answer, or none.
	Kind string `json:"kind" enum:"graphql,openapi,plain"`
	// HTTP status of the answer to GET, or to the introspection query; 0: nothing answered.
	Status int `json:"status"`
	// Schema of a GraphQL server, in SDL.
	Schema string `json:"schema,omitempty"`
	// OpenAPI document as it was sent.
	Document string `json:"document,omitempty"`
	// Name that the document has for the API.
	Name string `json:"name,omitempty"`
	// Reason for which nothing answered, or no more is known.
	Error string `json:"error,omitempty"`
}

// Probe finds out what answers at an address: a GraphQL server that can be introspected,
// an OpenAPI document, or anything else. Headers are sent with each call. The error is
// *Refusal for an address that must not be called, or ctx's.
func (k *Keeper) Probe(ctx context.Context, address string, headers map[string]string) (*Found, error) {
	if err := checkProbe(address, headers); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	from := introspect.Source{URL: address, Headers: headers, Addresses: k.options.Addresses, Timeout: probeWithin}
	text, err := introspect.Fetch(ctx, from)
	refused, ok := errors.AsType[*introspect.Error](err)
	switch {
	case err == nil:
		return &Found{Kind: FoundGraphQL, Status: http.StatusOK, Schema: text}, nil
	case !ok:
		return nil, err
	case refused.Cause == introspect.Forbidden, refused.Cause == introspect.Unusable:
		return nil, &Refusal{Status: badRequest, Message: "The address must not be called", Errors: []string{"url: " + refused.Message + forbiddenRemedy(refused)}}
	case refused.Cause == introspect.Disabled, refused.Cause == introspect.Refused:
		return &Found{Kind: FoundGraphQL, Status: max(refused.Status, http.StatusOK), Error: refused.Message}, nil
	case refused.Status == 0:
		return &Found{Kind: FoundPlain, Error: refused.Message}, nil
	}
	return k.look(ctx, &from)
}

func forbiddenRemedy(refused *introspect.Error) string {
	if refused.Cause != introspect.Forbidden {
		return ""
	}
	return "; set admin.private_upstreams to allow if upstreams may be in private networks"
}

// checkProbe refuses what cannot be sent.
func checkProbe(address string, headers map[string]string) error {
	parsed, err := url.Parse(address)
	refuse := func(problem string) error {
		return &Refusal{Status: badRequest, Message: "The address cannot be probed", Errors: []string{problem}}
	}
	switch {
	case err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "":
		return refuse("url: must be an address that begins with http:// or https://")
	case parsed.User != nil:
		return refuse("url: must not hold credentials; send them in headers")
	case len(headers) > maxHeaders:
		return refuse(fmt.Sprintf("headers: must be at most %d", maxHeaders))
	}
	for name, value := range headers {
		if !isToken(name) || strings.ContainsAny(value, "\r\n\x00") || len(name)+len(value) > 8<<10 {
			return refuse(fmt.Sprintf("headers.%.40s: must be a header name with a value on one line, of at most 8 KiB together", strings.ToValidUTF8(name, "?")))
		}
	}
	return nil
}

// isToken reports whether a text is a token of HTTP.
func isToken(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != ""
}

// look asks an address that is no GraphQL server for its document.
func (k *Keeper) look(ctx context.Context, from *introspect.Source) (*Found, error) {
	transport := from.Addresses.Transport(probeWithin)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from.URL, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, application/yaml;q=0.9, */*;q=0.5")
	req.Header.Set("User-Agent", "sluice")
	for name, value := range from.Headers {
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		return &Found{Kind: FoundPlain, Error: "it did not answer GET: " + brief(err)}, nil
	}
	defer resp.Body.Close()
	found := &Found{Kind: FoundPlain, Status: resp.StatusCode}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	switch {
	case err != nil:
		found.Error = "its answer broke off: " + brief(err)
	case len(body) > maxDocument:
		found.Error = fmt.Sprintf("its answer is larger than %d MiB and was not read", maxDocument>>20)
	case resp.StatusCode == http.StatusOK && utf8.Valid(body):
		found.describe(string(body))
	}
	return found, nil
}

// describe records an OpenAPI document, if the text is one.
func (f *Found) describe(text string) {
	cleaned, err := clean.Clean(clean.OpenAPI, text)
	if err != nil {
		return
	}
	var doc struct {
		Info struct {
			Title string `json:"title"`
		} `json:"info"`
	}
	if json.Unmarshal([]byte(cleaned), &doc) == nil {
		f.Kind, f.Document, f.Name = FoundOpenAPI, text, doc.Info.Title
	}
}

// brief returns the innermost message of an error, without addresses.
func brief(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err.Error()
}
