package streamstate

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Limits on one page of streams.
const (
	UsualPage = 50
	MostPage  = 500
)

// A Query chooses one page of streams.
type Query struct {
	Filter
	Phase Phase  // "": every phase
	After string // a Cursor; only streams behind it are listed
	Max   int    // streams listed
}

// A Page is one page of the streams of a gateway.
type Page struct {
	Streams []Stream `json:"streams" nullable:"false"`
	// On all pages.
	Total int `json:"total"`
	// For the parameter after of the next page; empty: there is none.
	Next string `json:"next,omitempty"`
}

// ParseQuery reads which streams a call lists. The error says what is wrong with the query
// parameters.
func ParseQuery(query map[string]string) (Query, error) {
	q := Query{Filter: Filter{Org: query["org_id"], API: query["api_id"], Nodes: query["nodes"] == "true"}, Phase: Phase(query["phase"]), After: query["after"], Max: UsualPage}
	if q.Phase != "" && !slices.Contains(Phases, q.Phase) {
		return q, fmt.Errorf("phase must be starting, running, waiting, reconnecting, failing, draining or stopped, not %.40q", string(q.Phase))
	}
	if _, _, ok := parseCursor(q.After); q.After != "" && !ok {
		return q, errors.New("after must be the member next of the page before")
	}
	if given := query["page_size"]; given != "" {
		n, err := strconv.Atoi(given)
		if err != nil || n < 1 || n > MostPage {
			return q, fmt.Errorf("page_size must be a whole number in 1…%d, not %.40q", MostPage, given)
		}
		q.Max = n
	}
	return q, nil
}

// A Desk answers calls about the streams of a source.
type Desk struct{ Source Source }

// List returns one page of streams, ordered by API and name. It takes the query parameters
// of a call; the error says what is wrong with these.
func (d Desk) List(query map[string]string) (any, error) {
	q, err := ParseQuery(query)
	if err != nil {
		return nil, err
	}
	return d.Page(&q), nil
}

// Page returns a page of streams, ordered by API and name.
func (d Desk) Page(q *Query) *Page {
	all := d.Source.Streams(q.Filter)
	if q.Phase != "" {
		all = slices.DeleteFunc(all, func(s Stream) bool { return s.Phase != q.Phase })
	}
	slices.SortFunc(all, func(a, b Stream) int { return Compare(&a, &b) })
	p := &Page{Streams: all, Total: len(all)}
	if api, name, ok := parseCursor(q.After); ok && q.After != "" {
		behind := &Stream{API: api, Name: name}
		first, found := slices.BinarySearchFunc(all, behind, func(s Stream, b *Stream) int { return Compare(&s, b) })
		if found {
			first++
		}
		p.Streams = all[first:]
	}
	most := fitting(p.Streams, q.Max)
	for most < len(p.Streams) && Compare(&p.Streams[most], &p.Streams[most-1]) == 0 {
		most++ // its former configuration drains
	}
	if len(p.Streams) > most {
		p.Streams = p.Streams[:most]
		p.Next = p.Streams[most-1].Cursor()
	}
	if p.Streams == nil {
		p.Streams = []Stream{}
	}
	return p
}

// maxNodes bounds the nodes of a page, so that the answer of a gateway stays below half a
// megabyte. One stream has at most 130.
const maxNodes = 1000

// fitting returns how many streams fit on a page of so many, at least one.
func fitting(list []Stream, most int) int {
	nodes := 0
	for i := range list[:min(len(list), most)] {
		if nodes += len(list[i].Nodes); nodes > maxNodes && i > 0 {
			return i
		}
	}
	return most
}

// Merge puts the answers of gateways to one query together: the streams of one page, ordered
// by API and name and then by gateway, and the cursor of the next page. A stream counts as
// one, however many gateways run it.
func Merge(answers []Answer, most int) (list []Stream, next string) {
	var until *Stream // what is behind it may be missing
	for i := range answers {
		page := &answers[i].Page
		list = append(list, page.Streams...)
		if page.Next == "" || len(page.Streams) == 0 {
			continue
		}
		if last := &page.Streams[len(page.Streams)-1]; until == nil || Compare(last, until) < 0 {
			until = last
		}
	}
	slices.SortFunc(list, func(a, b Stream) int {
		return cmp.Or(Compare(&a, &b), strings.Compare(a.Gateway, b.Gateway))
	})
	distinct := 0
	for i := range list {
		if i > 0 && Compare(&list[i], &list[i-1]) == 0 {
			continue
		}
		if distinct++; distinct > most || until != nil && Compare(&list[i], until) > 0 {
			return list[:i], list[i-1].Cursor()
		}
	}
	if until != nil {
		next = until.Cursor()
	}
	return list, next
}

// asks begins the text of questions.
const asks = "streams?"

// String returns the text of a question of the admin to gateways, which have it with their
// polls. It fits into a header line and has no commas.
func (q *Query) String() string {
	v := url.Values{"page_size": {strconv.Itoa(q.Max)}}
	set := func(name, value string) {
		if value != "" {
			v.Set(name, value)
		}
	}
	set("org_id", q.Org)
	set("api_id", q.API)
	set("phase", string(q.Phase))
	set("after", q.After)
	if q.Nodes {
		v.Set("nodes", "true")
	}
	return asks + v.Encode()
}

// An Answer is that of one gateway.
type Answer struct {
	Gateway string `json:"gateway"`
	Page
}

// From returns the name of the gateway.
func (a *Answer) From() string { return a.Gateway }

// Answer answers a question as a gateway of a name, nil if it is not about streams or is not
// understood.
func (d Desk) Answer(question, gateway string) *Answer {
	text, ok := strings.CutPrefix(question, asks)
	values, err := url.ParseQuery(text)
	if !ok || err != nil {
		return nil
	}
	query := make(map[string]string, len(values))
	for name := range values {
		query[name] = values.Get(name)
	}
	q, err := ParseQuery(query)
	if err != nil {
		return nil
	}
	a := &Answer{Gateway: gateway, Page: *d.Page(&q)}
	for i := range a.Streams {
		a.Streams[i].Gateway = gateway
	}
	return a
}
