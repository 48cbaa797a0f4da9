package live

import (
	"cmp"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/connections"
)

// A Registry holds the connections that are served, and what they have counted by API.
// The zero Registry is empty. It is safe for concurrent use.
type Registry struct {
	mu      sync.Mutex
	all     map[uint64]*Member
	apis    map[string]*totals
	leaving string // why all connections are to be ended; "": they are not
}

// A Member is a connection in a registry.
type Member struct {
	Client  netip.Addr
	Request string // id of the request that opened it

	id    uint64
	since int64 // Unix microseconds
	conn  *Conn
	of    *totals
	org   string
	owner atomic.Pointer[Owner]
}

// An Owner is the key whose connection it is.
type Owner struct {
	Hash  string // identity of the key
	Name  string // in logs: the beginning of a hash
	Alias string
}

// Own sets the owner, once it is known.
func (m *Member) Own(o *Owner) { m.owner.Store(o) }

// Owner returns the owner; the zero Owner: there is none, or it is not known yet.
func (m *Member) Owner() Owner {
	if o := m.owner.Load(); o != nil {
		return *o
	}
	return Owner{}
}

// ID returns the name of the connection: 16 hex digits.
func (m *Member) ID() string { return hexID(m.id) }

// Since returns when the connection was added.
func (m *Member) Since() time.Time { return time.UnixMicro(m.since) }

// API returns the id of the API that the connection leads to.
func (m *Member) API() string { return m.of.api }

// Protocol returns the WebSocket subprotocol.
func (m *Member) Protocol() string { return m.conn.o.Protocol.String() }

// Ending returns how the connection has ended, once it has.
func (m *Member) Ending() Ending { return m.conn.Ending() }

// Counted returns how many messages came from the client and were queued for it.
func (m *Member) Counted() (in, out uint64) { return m.conn.tally.in.Load(), m.conn.tally.out.Load() }

// Started returns how many operations the client has begun.
func (m *Member) Started() uint64 { return m.conn.tally.started.Load() }

func hexID(id uint64) string {
	text := strconv.FormatUint(id, 16)
	return "0000000000000000"[len(text):] + text
}

// parseID returns the number of an id, 0 if it is none.
func parseID(id string) uint64 {
	if len(id) != 16 {
		return 0
	}
	n, err := strconv.ParseUint(id, 16, 64)
	if err != nil {
		return 0
	}
	return n
}

// Add adds a connection to an API of an organisation. It is ended if Leave was called.
func (r *Registry) Add(c *Conn, m *Member, api, org string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all, r.apis = make(map[uint64]*Member), make(map[string]*totals)
	}
	m.conn, m.org, m.since = c, org, time.Now().UnixMicro()
	for m.id == 0 || r.all[m.id] != nil {
		m.id = rand.Uint64()
	}
	if m.of = r.apis[api]; m.of == nil {
		m.of = &totals{api: api}
		r.apis[api] = m.of
	}
	m.of.by[c.o.Protocol].opened++
	r.all[m.id] = m
	if r.leaving != "" {
		c.Close(CloseRestart, r.leaving)
	}
}

// Remove removes a connection that has ended.
func (r *Registry) Remove(m *Member) {
	ending := m.conn.Ending()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, m.id)
	m.of.by[m.conn.o.Protocol].ended(m.conn, &ending)
}

// Forget drops what was counted for APIs that are gone.
func (r *Registry) Forget(apis []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range apis {
		delete(r.apis, id)
	}
}

// members returns those that a filter chooses, whatever their number.
func (r *Registry) members(f *connections.Filter) []*Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []*Member
	for _, m := range r.all {
		if (f.API == "" || f.API == m.of.api) && (f.Org == "" || f.Org == m.org) && (f.Key == "" || f.Key == m.Owner().Hash) {
			found = append(found, m)
		}
	}
	return found
}

// List returns connections, the newest first, and how many the filter chooses whatever
// its After and Max.
func (r *Registry) List(f connections.Filter) (list []connections.Connection, total int) {
	found := r.members(&f)
	slices.SortFunc(found, func(a, b *Member) int {
		return cmp.Or(cmp.Compare(b.since, a.since), cmp.Compare(a.id, b.id))
	})
	total = len(found)
	if after, ok := connections.ParseCursor(f.After); ok {
		start, _ := slices.BinarySearchFunc(found, after, func(m *Member, c connections.Cursor) int {
			if cmp.Or(cmp.Compare(c.Since, m.since), cmp.Compare(m.ID(), c.ID)) <= 0 {
				return -1
			}
			return 1
		})
		found = found[start:]
	}
	list = make([]connections.Connection, 0, min(f.Max, len(found)))
	for _, m := range found[:min(f.Max, len(found))] {
		list = append(list, m.show())
	}
	return list, total
}

// Get returns a connection with its operations, nil if there is none.
func (r *Registry) Get(id string) *connections.Connection {
	r.mu.Lock()
	m := r.all[parseID(id)]
	r.mu.Unlock()
	if m == nil {
		return nil
	}
	shown := m.show()
	shown.Active = m.conn.operations()
	return &shown
}

// End ends a connection, of an organisation unless that is empty. It reports whether
// there is one.
func (r *Registry) End(id, org string, how connections.End) bool {
	r.mu.Lock()
	m := r.all[parseID(id)]
	r.mu.Unlock()
	if m == nil || org != "" && org != m.org {
		return false
	}
	m.conn.Close(how.Code, how.Reason)
	return true
}

// EndAll ends the connections that a filter chooses, and returns how many there were.
func (r *Registry) EndAll(f connections.Filter, how connections.End) int {
	found := r.members(&f)
	for _, m := range found {
		m.conn.Close(how.Code, how.Reason)
	}
	return len(found)
}

func (m *Member) show() connections.Connection {
	c, owner := m.conn, m.Owner()
	shown := connections.Connection{
		ID: m.ID(), API: m.of.api, Org: m.org, Key: owner.Hash, Alias: owner.Alias,
		Protocol: c.o.Protocol.String(), Request: m.Request, Since: m.Since().UTC(),
		Operations: int(c.tally.operations.Load()), Subscriptions: int(c.tally.subscriptions.Load()), QueuedBytes: c.out.Waiting(),
	}
	shown.MessagesIn, shown.MessagesOut = m.Counted()
	if m.Client.IsValid() {
		shown.Address = m.Client.WithZone("").String()
	}
	if moved := c.tally.moved.Load(); moved != 0 {
		last := time.UnixMilli(moved).UTC()
		shown.LastMessage = &last
	}
	return shown
}

// operations returns the active operations, the oldest first.
func (c *Conn) operations() []connections.Operation {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]connections.Operation, 0, len(c.active))
	for id, o := range c.active {
		list = append(list, connections.Operation{
			ID: id, Kind: o.note.Kind, Name: o.note.Name, Request: o.note.Request, Since: o.since.UTC(), Events: o.events,
		})
	}
	slices.SortFunc(list, func(a, b connections.Operation) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	return list
}
