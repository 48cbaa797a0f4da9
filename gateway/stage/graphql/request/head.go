package request

import (
	"bytes"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
)

// A Head holds what the header of a request says about its body and the response.
type Head struct {
	Media   Media // chosen for the response
	Stream  bool  // the client accepts an event stream
	Only    bool  // and nothing else of ours
	Refused bool  // the client accepts no media type of ours
	Text    bool  // the body is the text of a document, not JSON; set by Readable
	Untyped bool  // the body has no media type and is read as JSON; set by Readable
	Upgrade bool  // the client asks for a WebSocket connection

	types, encodings      int
	contentType, encoding []byte
	accept                acceptance
	browser               bool // a browser may have sent the request
}

// Read reads the header fields of a request. They must outlive the Head.
func (h *Head) Read(call *wire.Call) {
	*h = Head{}
	for i := range call.Fields {
		switch f := &call.Fields[i]; f.Name {
		case wire.NameAccept:
			h.accept.add(call.ValueOf(f))
		case wire.NameUpgrade:
			h.Upgrade = h.Upgrade || is(call.ValueOf(f), "websocket")
		case wire.NameOrigin, wire.NameCookie:
			h.browser = true
		case wire.NameContentType:
			h.types++
			h.contentType = call.ValueOf(f)
		case wire.NameContentEncoding:
			h.encodings++
			h.encoding = call.ValueOf(f)
		}
	}
	h.choose()
}

// is compares a text to one in lower case, ignoring case.
func is(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

var (
	unreadable = Refusal(pipeline.ReasonGraphQLMedia, 406, "The Accept header excludes every media type of GraphQL answers; application/graphql-response+json and application/json are served.")
	noType     = Refusal(pipeline.ReasonGraphQLMedia, 415, "The request has no Content-Type, and a browser may have sent it; send application/json.")
	emptyType  = Refusal(pipeline.ReasonGraphQLMedia, 415, "The request has an empty Content-Type; send application/json.")
	manyTypes  = Refusal(pipeline.ReasonGraphQLMedia, 415, "The request has more than one Content-Type; send application/json.")
	wrongType  = Refusal(pipeline.ReasonGraphQLMedia, 415, "The request has a Content-Type that is not understood; send application/json.")
	wrongText  = Refusal(pipeline.ReasonGraphQLMedia, 415, "The request has a Content-Type with a charset that is not understood; send UTF-8.")
	compressed = Refusal(pipeline.ReasonGraphQLMedia, 415, "The request has a Content-Encoding that is not understood; send it uncompressed.")
)

// Answerable refuses requests whose client accepts no media type of ours.
func (h *Head) Answerable() *pipeline.Rejection {
	if h.Refused {
		return unreadable
	}
	return nil
}

// Readable refuses a body that is neither JSON nor the text of a document.
//
// A body without a media type is read as JSON unless a browser may have sent it: the page
// of another site can send such a body with the credentials of the person who views it,
// as it can send forms and plain text. A browser asks before it sends
// application/graphql or application/json for another site.
func (h *Head) Readable(call *wire.Call) *pipeline.Rejection {
	switch {
	case h.encodings > 1 || h.encodings == 1 && len(h.encoding) > 0 && !is(h.encoding, "identity"):
		return compressed
	case h.types == 0 && (h.browser || call.Header("Sec-Fetch-Site") != nil || call.Header("Referer") != nil):
		return noType
	case h.types == 0:
		h.Untyped = true
		return nil
	case h.types > 1:
		return manyTypes
	case len(h.contentType) == 0:
		return emptyType
	}
	if string(h.contentType) == "application/json" {
		return nil
	}
	kind, params, _ := bytes.Cut(h.contentType, []byte{';'})
	kind = bytes.TrimRight(kind, " \t")
	h.Text = is(kind, "application/graphql")
	if !h.Text && !is(kind, "application/json") {
		return wrongType
	}
	for len(params) > 0 {
		var one []byte
		one, params, _ = bytes.Cut(params, []byte{';'})
		if !speaksUTF8(one) {
			return wrongText
		}
	}
	return nil
}

// speaksUTF8 reports whether a parameter of a Content-Type names no charset but
// UTF-8. It also covers servers that ignore blanks or follow RFC 2231 (charset*=).
func speaksUTF8(param []byte) bool {
	const charset = "charset"
	name, value, _ := bytes.Cut(param, []byte{'='})
	name, value = bytes.Trim(name, " \t"), bytes.Trim(value, " \t\"")
	if len(name) < len(charset) || !is(name[:len(charset)], charset) {
		return true
	}
	return len(name) == len(charset) && (is(value, "utf-8") || is(value, "utf8"))
}
