package connections

import (
	"errors"
	"fmt"
	"strconv"
)

// A Source is where open connections are held.
type Source interface {
	// List returns connections, the newest first, and how many there are on all pages.
	List(f Filter) (list []Connection, total int)

	// Get returns a connection with its operations, or nil.
	Get(id string) *Connection

	// End ends a connection, of an organisation unless that is empty, and reports whether
	// there is one.
	End(id, org string, how End) bool

	// EndAll ends connections, and returns how many there were.
	EndAll(f Filter, how End) int
}

// A Desk answers calls about the connections of a source. Its methods take the query
// parameters of calls; their errors say what is wrong with these.
type Desk struct{ Source Source }

// Limits on one page of connections.
const (
	UsualPage = 50
	MostPage  = 500
)

// A Page is one page of connections.
type Page struct {
	// Connections of the page, the newest first.
	Connections []Connection `json:"connections"`
	// Number of connections on all pages.
	Total int `json:"total"`
	// Value of the parameter after for the next page; left out: there is none.
	Next string `json:"next,omitempty"`
}

// List returns one page of connections, the newest first.
func (d Desk) List(query map[string]string) (any, error) {
	f, err := ParseFilter(query)
	if err != nil {
		return nil, err
	}
	return d.Page(f), nil
}

// Page returns the page that a filter chooses.
func (d Desk) Page(f Filter) Page {
	most := f.Max
	f.Max++
	list, total := d.Source.List(f)
	return PageOf(list, total, most)
}

// PageOf returns a page of at most so many connections. The list has one more if there
// is another page.
func PageOf(list []Connection, total, most int) Page {
	p := Page{Connections: list, Total: total}
	if len(list) > most {
		p.Connections, p.Next = list[:most], list[most-1].Cursor()
	}
	return p
}

// ParseFilter reads which connections a call lists.
func ParseFilter(query map[string]string) (Filter, error) {
	f := filterOf(query)
	f.After, f.Max = query["after"], UsualPage
	if _, ok := ParseCursor(f.After); f.After != "" && !ok {
		return f, errors.New("after must be the member next of the page before")
	}
	if given := query["page_size"]; given != "" {
		n, err := strconv.Atoi(given)
		if err != nil || n < 1 || n > MostPage {
			return f, fmt.Errorf("page_size must be a whole number in 1…%d, not %.40q", MostPage, given)
		}
		f.Max = n
	}
	return f, nil
}

func filterOf(query map[string]string) Filter {
	return Filter{Org: query["org_id"], API: query["api_id"], Key: query["key_hash"]}
}

// Get returns a connection with its operations, and whether there is one.
func (d Desk) Get(id string) (connection any, found bool) {
	c := d.Source.Get(id)
	return c, c != nil
}

// End ends a connection, and reports whether there is one.
func (d Desk) End(id string, query map[string]string) (found bool, err error) {
	how, err := ParseEnd(query["code"], query["close_reason"])
	if err != nil {
		return false, err
	}
	return d.Source.End(id, query["org_id"], how), nil
}

// EndAll ends the connections of a key or an API, and returns how many there were.
func (d Desk) EndAll(query map[string]string) (n int, err error) {
	how, err := ParseEnd(query["code"], query["close_reason"])
	if err != nil {
		return 0, err
	}
	f := filterOf(query)
	if f.API == "" && f.Key == "" {
		return 0, errors.New("key_hash or api_id must name the connections to end")
	}
	return d.Source.EndAll(f, how), nil
}
