package streams

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// A Document is the object x-svc-streaming as it was written.
type Document struct{ root *node }

// Read reads an object without checking it. It is nil if raw is not JSON.
func Read(raw json.RawMessage) *Document {
	if object.Check(raw, maxBytes) != nil {
		return nil
	}
	return &Document{readTree(raw)}
}

// Raw returns the object as JSON.
func (d *Document) Raw() json.RawMessage { return d.root.appendTo(nil) }

// A SecretPlace is a text in which references to secrets count.
type SecretPlace struct {
	Path string // below x-svc-streaming
	Text string

	// Escape returns a secret as it is written in this text.
	Escape func(secret string) string

	// StandIn is what may stand at the beginning of the text in place of a reference, for
	// checks of the rest.
	StandIn string

	of *node
}

// Set replaces the text.
func (p *SecretPlace) Set(text string) { p.of.text = text }

// Secrets returns the places: addresses and credentials of message brokers; URL, headers
// and credentials of http_client and http; and the secret of portal_webhook.
func (d *Document) Secrets() []SecretPlace {
	var found []SecretPlace
	eachSecret(d.root, "", func(p SecretPlace) { found = append(found, p) })
	return found
}

// StandIn is a text in place of a reference, long enough for every secret.
const StandIn = "reference-to-a-secret-of-the-gateway"

// AddressStandIn is StandIn for one at the beginning of an address of a message broker.
const AddressStandIn = "reference.invalid"

func eachSecret(n *node, at string, do func(SecretPlace)) {
	for i, below := range n.below {
		path := object.Item(at, i)
		if n.kind == '{' {
			path = entry(at, n.names[i])
			secretsOf(n.names[i], below, path, do)
		}
		eachSecret(below, path, do)
	}
}

// secretsOf calls do for the texts of a connector or processor.
func secretsOf(kind string, n *node, at string, do func(SecretPlace)) {
	one := func(at string, n *node, escape func(string) string, start string) {
		if n != nil && n.kind == '"' {
			do(SecretPlace{Path: at, Text: n.text, Escape: escape, StandIn: start, of: n})
		}
	}
	member := func(n *node, at string, names ...string) {
		for _, name := range names {
			one(object.Member(at, name), n.member(name), plain, StandIn)
		}
	}
	switch kind {
	case "portal_webhook":
		member(n, at, "secret")
	case "msgbroker":
		member(n.member("sasl"), at+".sasl", "user", "username", "password")
		if list := n.member("addresses"); list != nil && list.kind == '[' {
			for i, address := range list.below {
				one(object.Item(at+".addresses", i), address, InAddress(address.text), AddressStandIn)
			}
		}
	case "http_client", "http":
		one(at+".url", n.member("url"), inTemplate, "https://reference.invalid")
		auth := n.member("auth")
		member(auth, at+".auth", "bearer")
		member(auth.member("basic"), at+".auth.basic", "user", "username", "password")
		if headers := n.member("headers"); headers != nil && headers.kind == '{' {
			for i, value := range headers.below {
				one(entry(at+".headers", headers.names[i]), value, inTemplate, StandIn)
			}
		}
	}
}

func plain(secret string) string { return secret }

// inTemplate writes a secret in a template, of which it is literal text.
func inTemplate(secret string) string { return strings.ReplaceAll(secret, "${", "$${") }

// InAddress returns how a secret is written in an address of a message broker:
// percent-encoded, unless it is the whole address.
func InAddress(address string) func(string) string {
	if strings.HasPrefix(address, "{") && strings.IndexByte(address, '}') == len(address)-1 {
		return plain
	}
	return func(secret string) string { return strings.ReplaceAll(url.QueryEscape(secret), "+", "%20") }
}
