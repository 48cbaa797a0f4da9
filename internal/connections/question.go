package connections

import (
	"net/url"
	"strconv"
	"strings"
)

// What a question asks for.
const (
	VerbList = "list" // a page of connections
	VerbGet  = "get"  // one connection with its operations
	VerbEnd  = "end"  // to end one
)

// A Question is one of the admin to gateways, which have it with their polls.
type Question struct {
	Verb    string
	Filter         // of connections that are listed; otherwise its Org, unless that is empty
	Gateway string // the only one that answers; "": all do
	ID      string // of the connection, unless connections are listed
	How     End    // of VerbEnd
}

// asks begins the text of questions.
const asks = "connections?"

// IsQuestion reports whether a text is a question about connections.
func IsQuestion(text string) bool { return strings.HasPrefix(text, asks) }

// String returns the text of the question, which fits into a header line and has no commas.
func (q *Question) String() string {
	v := url.Values{"verb": {q.Verb}}
	set := func(name, value string) {
		if value != "" {
			v.Set(name, value)
		}
	}
	set("org_id", q.Org)
	set("api_id", q.API)
	set("key_hash", q.Key)
	set("after", q.After)
	set("gateway", q.Gateway)
	set("id", q.ID)
	set("close_reason", q.How.Reason)
	if q.Max > 0 {
		set("page_size", strconv.Itoa(q.Max))
	}
	if q.How.Code > 0 {
		set("code", strconv.Itoa(q.How.Code))
	}
	return asks + v.Encode()
}

// An Answer is that of one gateway.
type Answer struct {
	Gateway string `json:"gateway"`
	// To list.
	Page *Page `json:"page,omitempty"`
	// To get; left out: there is none of this id.
	Connection *Connection `json:"connection,omitempty"`
	// To end; false: there is none of this id.
	Ended bool `json:"ended,omitempty"`
}

// From returns the name of the gateway.
func (a *Answer) From() string { return a.Gateway }

// Answer answers a question as a gateway of a name, nil if there is nothing to say: the
// question is another gateway's, or is not understood.
func (d Desk) Answer(question, gateway string) *Answer {
	text, ok := strings.CutPrefix(question, asks)
	values, err := url.ParseQuery(text)
	if !ok || err != nil || values.Has("gateway") && values.Get("gateway") != gateway {
		return nil
	}
	query := make(map[string]string, len(values))
	for name := range values {
		query[name] = values.Get(name)
	}
	a := &Answer{Gateway: gateway}
	switch query["verb"] {
	case VerbList:
		f, err := ParseFilter(query)
		if err != nil {
			return nil
		}
		page := d.Page(f)
		a.Page = &page
	case VerbGet:
		a.Connection = d.Source.Get(query["id"])
		if c := a.Connection; c != nil && query["org_id"] != "" && c.Org != query["org_id"] {
			a.Connection = nil
		}
	case VerbEnd:
		if a.Ended, err = d.End(query["id"], query); err != nil {
			return nil
		}
	default:
		return nil
	}
	return a
}
