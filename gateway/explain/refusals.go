package explain

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
)

// Refusals remembers the last refusals of a gateway. What one takes is bounded,
// and holds neither a body, nor a query, nor a credential of the request. It is
// safe for concurrent use; the nil Refusals remembers nothing.
type Refusals struct {
	shards [shards]refusalShard
	each   int // refusals of one shard
}

// shards is how many locks there are. The id of a request tells whose it is.
const shards = 16

type refusalShard struct {
	mu   sync.Mutex
	ring []record // made at the first refusal
	next int
}

// NewRefusals returns what remembers about so many refusals, or nil when that is
// none.
func NewRefusals(most int) *Refusals {
	if most <= 0 {
		return nil
	}
	return &Refusals{each: (most + shards - 1) / shards}
}

// room is how many bytes of texts a record has, and most how many of them each
// text may take.
const room = 736

var most = [texts]int{
	textAPI: 64, textOrg: 32, textAPIName: 48, textVersion: 32, textRevision: 20, textKey: 12, textPolicy: 48,
	textMethod: 16, textPath: 128, textMessage: 112, textErrors: 224,
}

// The texts of a record.
const (
	textAPI = iota
	textOrg
	textAPIName
	textVersion
	textRevision
	textKey
	textPolicy
	textMethod
	textPath
	textMessage
	textErrors
	texts
)

// maxLimits is how many limits of a request are remembered.
const maxLimits = 4

// A record is one refusal, without a pointer: thousands of them cost the
// collector of garbage nothing.
type record struct {
	id      [idLength]byte
	at      int64 // unix nanoseconds; 0: the place is empty
	client  [16]byte
	status  uint16
	reason  pipeline.Reason
	stage   Place
	limited uint8 // how many of limits there are
	limits  [maxLimits]limitRecord
	ends    [texts]uint16 // where each text ends in text
	text    [room]byte
}

type limitRecord struct {
	kind             counter.Kind
	max, period      int64 // period in nanoseconds
	remaining, reset int64 // as counter.Count has them
}

// A Place says which stage refused: the number of a list, and of a stage in it.
// What they mean is the gateway's.
type Place struct{ List, Kind uint8 }

// Add remembers a refused exchange. It does not allocate, but for the first of a
// shard.
func (r *Refusals) Add(ex *pipeline.Exchange, at Place) {
	if r == nil || ex.Rejection == nil {
		return
	}
	s := r.shardOf(ex.ID[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ring == nil {
		s.ring = make([]record, r.each)
	}
	s.ring[s.next].fill(ex, at)
	if s.next++; s.next == len(s.ring) {
		s.next = 0
	}
}

func (r *Refusals) shardOf(id []byte) *refusalShard {
	return &r.shards[binary.LittleEndian.Uint16(id)>>1%shards]
}

// fill makes the record that of an exchange.
func (rec *record) fill(ex *pipeline.Exchange, at Place) {
	rec.id, rec.at, rec.stage = ex.ID, ex.Started.UnixNano(), at
	rec.client = ex.Client.As16()
	rec.status, rec.reason = uint16(cmp.Or(ex.Answer.Status, ex.Rejection.Status)), ex.Rejection.Reason
	api, org, name, version, policy := "", "", "", "", ""
	if ex.API != nil {
		api, org, name = ex.API.Definition.ID, ex.API.Definition.OrgID, ex.API.Definition.Name
	}
	if ex.Version != nil {
		version = ex.Version.Name
	}
	if ex.Grant != nil {
		policy = ex.Grant.Policy
	}
	put(rec, textAPI, api)
	put(rec, textOrg, org)
	put(rec, textAPIName, name)
	put(rec, textVersion, version)
	put(rec, textRevision, ex.Revision)
	put(rec, textKey, ex.KeyName)
	put(rec, textPolicy, policy)
	put(rec, textMethod, ex.Call.Method)
	put(rec, textPath, ex.Call.Path)
	put(rec, textMessage, ex.Rejection.Message)
	var errors []byte
	if ex.Rejection.GraphQL() {
		errors = ex.Rejection.JSON()
	}
	put(rec, textErrors, errors)
	rec.count(ex)
}

// put sets one text behind the one before it, as much of it as there may be.
func put[T string | []byte](rec *record, which int, text T) {
	from := rec.startOf(which)
	rec.ends[which] = from + uint16(copy(rec.text[from:], text[:min(len(text), most[which])]))
}

func (rec *record) startOf(which int) uint16 {
	if which == 0 {
		return 0
	}
	return rec.ends[which-1]
}

func (rec *record) textOf(which int) string {
	return strings.ToValidUTF8(string(rec.text[rec.startOf(which):rec.ends[which]]), "")
}

// count notes how those limits of the key stood that were asked.
func (rec *record) count(ex *pipeline.Exchange) {
	rec.limited = 0
	if ex.Grant == nil {
		return
	}
	for i := range min(len(ex.Grant.Limits()), len(ex.Counts), maxLimits) {
		rated := i == int(ex.Grant.Rate) && (ex.Rated > 0 || ex.Rejection.Reason == pipeline.ReasonRateLimit)
		if !ex.Counted && !rated {
			continue
		}
		l, c := &ex.Grant.Limits()[i], &ex.Counts[i]
		rec.limits[rec.limited] = limitRecord{l.Kind, l.Max, int64(l.Period), c.Remaining, c.ResetAt}
		rec.limited++
	}
}

// Find returns the refusal of an id; false when it is not remembered, or not any
// more. name tells what a stage is called.
func (r *Refusals) Find(id string, name func(Place) string) (*Refusal, bool) {
	if r == nil || !isID(id) {
		return nil, false
	}
	s := r.shardOf([]byte(id))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.ring {
		if rec := &s.ring[i]; rec.at != 0 && string(rec.id[:]) == id {
			return rec.refusal(name), true
		}
	}
	return nil, false
}

func (rec *record) refusal(name func(Place) string) *Refusal {
	found := &Refusal{
		ID: string(rec.id[:]), At: time.Unix(0, rec.at).UTC(), Stage: name(rec.stage), Status: int(rec.status),
		Reason: rec.reason.String(), Message: rec.textOf(textMessage), Method: rec.textOf(textMethod), Path: rec.textOf(textPath),
		Key: rec.textOf(textKey), Policy: rec.textOf(textPolicy), Revision: rec.textOf(textRevision), Errors: rec.textOf(textErrors),
	}
	if client := netip.AddrFrom16(rec.client).Unmap(); !client.IsUnspecified() {
		found.Client = client.String()
	}
	if id := rec.textOf(textAPI); id != "" {
		found.API = &API{ID: id, Org: rec.textOf(textOrg), Name: rec.textOf(textAPIName), Version: rec.textOf(textVersion)}
	}
	for _, l := range rec.limits[:rec.limited] {
		found.Limits = append(found.Limits, l.counted())
	}
	return found
}

func (l *limitRecord) counted() Counted {
	c := Counted{Kind: "quota", Max: l.max, Remaining: l.remaining}
	if l.kind == counter.Rate {
		c.Kind = "rate"
	}
	if l.period > 0 {
		c.Period = time.Duration(l.period).String()
	}
	if l.reset > 0 {
		at := time.UnixMilli(l.reset).UTC()
		c.ResetAt = &at
	}
	return c
}
