package explain

import (
	"cmp"
	"hash/maphash"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
)

// Refusals records the last refusals of a gateway. A record has a bounded size, and
// neither body, query nor credentials of the request. It is safe for concurrent use;
// the nil Refusals records nothing.
type Refusals struct {
	shards [shards]refusalShard
	each   int // refusals of one shard
}

// shards is the number of locks. The id of a request selects one.
const shards = 16

type refusalShard struct {
	mu   sync.Mutex
	ring []record // made at the first refusal
	next int
}

// NewRefusals returns a record of about most refusals, or nil when most is 0.
func NewRefusals(most int) *Refusals {
	if most <= 0 {
		return nil
	}
	return &Refusals{each: (most + shards - 1) / shards}
}

// capacity is how many bytes of texts a record holds, and most how many of them each
// text may take; longer ones are cut.
const capacity = 960

var most = [texts]int{
	textStage: 16, textAPI: 64, textOrg: 32, textAPIName: 48, textVersion: 32, textRevision: 20, textKey: 12, textPolicy: 48,
	textMethod: 16, textPath: 128, textMessage: 112, textErrors: 224, textUpstream: 64, textCause: 144,
}

// The texts of a record.
const (
	textStage = iota
	textAPI
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
	textUpstream
	textCause
	texts
)

// maxLimits is how many limits of a request are recorded.
const maxLimits = 4

// A record is one refusal, without pointers: the garbage collector does not scan
// records.
type record struct {
	id      [pipeline.MaxRequestID]byte
	idSize  uint8
	at      int64 // unix nanoseconds; 0: the record is empty
	client  [16]byte
	status  uint16
	reason  pipeline.Reason
	limited uint8 // how many of limits there are
	limits  [maxLimits]limitRecord
	ends    [texts]uint16 // where each text ends in text
	text    [capacity]byte
}

type limitRecord struct {
	kind             counter.Kind
	max, period      int64 // period in nanoseconds
	remaining, reset int64 // as counter.Count has them
}

// Add records a refused exchange. It allocates for the first of a shard only.
func (r *Refusals) Add(ex *pipeline.Exchange) {
	if r == nil || ex.Rejection == nil {
		return
	}
	s := r.shardOf(ex.RequestID())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ring == nil {
		s.ring = make([]record, r.each)
	}
	s.ring[s.next].fill(ex)
	if s.next++; s.next == len(s.ring) {
		s.next = 0
	}
}

var shardSeed = maphash.MakeSeed()

func (r *Refusals) shardOf(id []byte) *refusalShard {
	return &r.shards[maphash.Bytes(shardSeed, id)%shards]
}

// fill writes the record of an exchange.
func (rec *record) fill(ex *pipeline.Exchange) {
	rec.idSize, rec.at = uint8(copy(rec.id[:], ex.RequestID())), ex.Started.UnixNano()
	rec.client = ex.Client.As16()
	rec.status, rec.reason = uint16(cmp.Or(ex.Answer.Status, ex.Rejection.Status)), ex.Rejection.Reason
	stage, api, org, name, version, policy := "", "", "", "", "", ""
	if ex.Stopped != nil {
		stage = ex.Stopped.Name
	}
	if ex.API != nil {
		api, org, name = ex.API.Definition.ID, ex.API.Definition.OrgID, ex.API.Definition.Name
	}
	if ex.Version != nil {
		version = ex.Version.Name
	}
	if ex.Grant != nil {
		policy = ex.Grant.Policy
	}
	put(rec, textStage, stage)
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
	called, cause := "", ""
	if err := ex.Upstream.Failed; err != nil {
		called, cause = ex.Upstream.Address, err.Error()
	}
	put(rec, textUpstream, called)
	put(rec, textCause, cause)
	rec.count(ex)
}

// put appends one text, cut to its largest size.
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

// count records the limits of the key that counted the request or refused it.
func (rec *record) count(ex *pipeline.Exchange) {
	rec.limited = 0
	if ex.Grant == nil {
		return
	}
	for i := range min(len(ex.Grant.Limits()), len(ex.Charge.Counts), maxLimits) {
		rated := i == int(ex.Grant.Rate) && (ex.Charge.Rate > 0 || ex.Rejection.Reason == pipeline.ReasonRateLimit)
		if !ex.Charge.Whole && !rated {
			continue
		}
		l, c := &ex.Grant.Limits()[i], &ex.Charge.Counts[i]
		rec.limits[rec.limited] = limitRecord{l.Kind, l.Max, int64(l.Period), c.Remaining, c.ResetAt}
		rec.limited++
	}
}

// Find returns the refusal of a request id; false when there is none, or none any
// more.
func (r *Refusals) Find(id string) (*Refusal, bool) {
	if r == nil || !pipeline.IsRequestID(id) {
		return nil, false
	}
	s := r.shardOf([]byte(id))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.ring {
		if rec := &s.ring[i]; rec.at != 0 && string(rec.id[:rec.idSize]) == id {
			return rec.refusal(), true
		}
	}
	return nil, false
}

func (rec *record) refusal() *Refusal {
	found := &Refusal{
		ID: string(rec.id[:rec.idSize]), At: time.Unix(0, rec.at).UTC(), Stage: rec.textOf(textStage), Status: int(rec.status),
		Reason: rec.reason.String(), Message: rec.textOf(textMessage), Method: rec.textOf(textMethod), Path: rec.textOf(textPath),
		Key: rec.textOf(textKey), Policy: rec.textOf(textPolicy), Revision: rec.textOf(textRevision), Errors: rec.textOf(textErrors),
		Upstream: rec.textOf(textUpstream), Cause: rec.textOf(textCause),
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
