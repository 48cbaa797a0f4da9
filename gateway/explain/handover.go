package explain

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/usage"
)

// A Handover keeps the newest refusals of each key, usage.RefusalsOfKey of them, until
// they are taken for the admin. Those without a key are kept by API. It is safe for
// concurrent use; the nil Handover keeps nothing.
//
// It holds about 4,000 refusals at most, in 6 MiB, and the same again while they are
// taken. A key that has none when there is no room gets none until the next Take: these
// refusals are counted in Lost.
type Handover struct {
	shards [shards]handoverShard
	taking sync.Mutex
	lost   atomic.Uint64
	room   int // refusals of one shard
}

// roomOfShard is how many refusals one shard keeps.
const roomOfShard = 256

// NewHandover returns a handover of nothing.
func NewHandover() *Handover { return &Handover{room: roomOfShard} }

type handoverShard struct {
	mu    sync.Mutex
	kept  handoverTable
	spare handoverTable // empty between Takes; only Take uses it
}

// A handoverTable holds slots in memory that it keeps from one Take to the next.
type handoverTable struct {
	groups map[refusedGroup]refusedRing
	slots  []slot
}

// refusedGroup is what refusals have in common of which the newest are kept.
type refusedGroup struct {
	key string // identity; not copied: it is held until the second next Take
	api string // "" with a key
}

// A refusedRing is the list of a group's slots: each leads to the one that came next, and
// the newest to the oldest.
type refusedRing struct {
	newest, size int32
}

type slot struct {
	record
	api, org string // of the API
	key      string // identity
	clear    bool   // key is the key itself, which must not leave the process
	next     int32
}

// Add keeps a refused exchange. Requests that reach no API are not kept: they belong to
// no organisation. Once the memory of a shard is there it does not allocate.
func (h *Handover) Add(ex *pipeline.Exchange) {
	if h == nil || ex.Rejection == nil || ex.API == nil {
		return
	}
	of := refusedGroup{key: ex.KeyHash}
	if of.key == "" {
		of.api = ex.API.Definition.ID
	}
	s := &h.shards[maphash.Comparable(shardSeed, of)%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	to := s.kept.slot(of, h.room)
	if to == nil {
		h.lost.Add(1)
		return
	}
	to.fill(ex)
	d := ex.API.Definition
	to.api, to.org = d.ID, d.OrgID
	to.key, to.clear = ex.KeyHash, !strings.HasPrefix(ex.KeyHash, ex.KeyName)
}

// slot returns the slot for the next refusal of a group: a free one, or else the oldest
// of the group; nil when it has none.
func (t *handoverTable) slot(of refusedGroup, room int) *slot {
	ring := t.groups[of]
	switch {
	case ring.size < usage.RefusalsOfKey && len(t.slots) < room:
		t.slots = append(t.slots, slot{})
		at := int32(len(t.slots) - 1)
		t.slots[at].next = at
		if ring.size > 0 {
			newest := &t.slots[ring.newest]
			t.slots[at].next, newest.next = newest.next, at
		}
		ring = refusedRing{at, ring.size + 1}
	case ring.size > 0:
		ring.newest = t.slots[ring.newest].next
	default:
		return nil
	}
	if t.groups == nil {
		t.groups = make(map[refusedGroup]refusedRing)
	}
	t.groups[of] = ring
	return &t.slots[ring.newest]
}

// Lost returns how many refusals were not kept for want of room.
func (h *Handover) Lost() uint64 {
	if h == nil {
		return 0
	}
	return h.lost.Load()
}

// Take hands out what was kept since the last Take, and forgets it.
func (h *Handover) Take(each func(usage.Refusal)) {
	if h == nil {
		return
	}
	h.taking.Lock()
	defer h.taking.Unlock()
	for i := range h.shards {
		s := &h.shards[i]
		s.mu.Lock()
		s.kept, s.spare = s.spare, s.kept
		s.mu.Unlock()
		for j := range s.spare.slots {
			each(s.spare.slots[j].export())
		}
		s.spare.reset()
	}
}

// reset empties the table. It gives memory back when most of it was not needed.
func (t *handoverTable) reset() {
	if len(t.slots) < cap(t.slots)/8 {
		*t = handoverTable{}
		return
	}
	clear(t.groups)
	clear(t.slots) // its texts keep definitions and sessions from being freed
	t.slots = t.slots[:0]
}

func (s *slot) export() usage.Refusal {
	r := s.refusal()
	out := usage.Refusal{
		ID: r.ID, At: r.At, Org: s.org, API: s.api, Key: usage.KeyOf(s.key, s.clear), KeyName: r.Key,
		Stage: r.Stage, Status: r.Status, Reason: r.Reason, Message: r.Message, Method: r.Method, Path: r.Path, Client: r.Client,
		Policy: r.Policy, Revision: r.Revision, Errors: r.Errors, Upstream: r.Upstream, Cause: r.Cause,
	}
	if r.API != nil {
		out.APIName, out.Version = r.API.Name, r.API.Version
	}
	for _, l := range r.Limits {
		out.Limits = append(out.Limits, usage.Counted(l))
	}
	for _, text := range []*string{&out.APIName, &out.Version, &out.KeyName, &out.Message, &out.Method, &out.Path, &out.Policy, &out.Errors, &out.Cause} {
		*text = usage.Clean(*text)
	}
	return out
}
