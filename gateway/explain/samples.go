package explain

import (
	"hash/maphash"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/usage"
)

// SampleOptions are the settings of Samples.
type SampleOptions struct {
	Rate    int      // requests that are recorded per second and API
	Headers []string // names of headers that are recorded beside those that rules of the gateway look at
}

// Samples records requests, the first of each second and API, until they are taken for
// the admin. What may authenticate is left out or masked. It is safe for concurrent use;
// the nil Samples records nothing.
//
// A request that is not recorded costs one atomic read and allocates nothing.
type Samples struct {
	rate    uint64
	headers map[string]bool // canonical names
	slots   [sampleSlots]atomic.Uint64
	full    atomic.Bool
	lost    atomic.Uint64

	mu   sync.Mutex
	kept []usage.Sample
	size int // bytes of the texts of kept
}

// sampleSlots is how many counts of a second there are. APIs that share one share the
// rate as well.
const sampleSlots = 4096

// Bounds of the samples that wait to be taken.
const (
	mostSamples  = 2000
	mostSampled  = 4 << 20 // bytes of texts
	bitsOfSample = 16      // of a slot; the rest is the second
)

// NewSamples returns a record of nothing, or nil when the rate is 0.
func NewSamples(o SampleOptions) *Samples {
	if o.Rate <= 0 {
		return nil
	}
	s := &Samples{rate: uint64(min(o.Rate, 1<<bitsOfSample-1)), headers: make(map[string]bool)}
	for _, name := range append(slices.Clone(ruledHeaders), o.Headers...) {
		s.headers[textproto.CanonicalMIMEHeaderKey(name)] = true
	}
	return s
}

// ruledHeaders are the headers that rules of the gateway look at, besides those that
// definitions name.
var ruledHeaders = []string{
	"Accept", "Content-Type", "Content-Encoding", "Origin", "Access-Control-Request-Method", "Access-Control-Request-Headers",
	"Connection", "Upgrade", "Sec-WebSocket-Version", "Sec-WebSocket-Key",
}

// Add records an exchange that has been answered, if one is due. Requests that reach no
// API are not recorded: they belong to no organisation.
func (s *Samples) Add(ex *pipeline.Exchange) {
	if s == nil || ex.API == nil || !s.due(ex.API.Definition.ID, uint64(ex.Call.End().Unix())) {
		return
	}
	if s.full.Load() || len(ex.Call.Path)+len(ex.Call.Query) >= usage.MaxSampleURL {
		s.lost.Add(1)
		return
	}
	one := s.sample(ex)
	size := one.Size()
	if size > usage.MaxSampleTexts {
		one.Body, one.Cut = "", one.Body != "" || one.Cut
		size = one.Size()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) >= mostSamples || s.size+size > mostSampled || size > usage.MaxSampleTexts {
		s.full.Store(size <= usage.MaxSampleTexts)
		s.lost.Add(1)
		return
	}
	s.kept, s.size = append(s.kept, one), s.size+size
}

// due reports whether a request of an API is to be recorded in a second.
func (s *Samples) due(api string, second uint64) bool {
	slot := &s.slots[maphash.String(shardSeed, api)%sampleSlots]
	for {
		was := slot.Load()
		next := was + 1
		switch {
		case was>>bitsOfSample < second:
			next = second<<bitsOfSample | 1
		case was&(1<<bitsOfSample-1) >= s.rate:
			return false
		}
		if slot.CompareAndSwap(was, next) {
			return true
		}
	}
}

// Lost returns how many requests were due and not kept, for want of room.
func (s *Samples) Lost() uint64 {
	if s == nil {
		return 0
	}
	return s.lost.Load()
}

// Take hands out what was kept since the last Take, and forgets it.
func (s *Samples) Take(each func(usage.Sample)) {
	if s == nil {
		return
	}
	s.mu.Lock()
	kept := s.kept
	s.kept, s.size = nil, 0
	s.full.Store(false)
	s.mu.Unlock()
	for i := range kept {
		each(kept[i])
	}
}

// sample returns the record of an exchange.
func (s *Samples) sample(ex *pipeline.Exchange) usage.Sample {
	call, d := ex.Call, ex.API.Definition
	hide := newHiding(ex)
	one := usage.Sample{
		ID: string(ex.RequestID()), At: ex.Started.UTC(), Org: d.OrgID, API: d.ID, Method: hide.text(call.Method), Host: hide.text(call.Host),
		TLS: call.TLS, Length: call.Length, Status: ex.Answer.Status, URL: hide.text(call.Path),
	}
	if len(call.Query) > 0 {
		one.URL += "?" + hide.query(string(call.Query), d.IsGraphQL())
	}
	if ex.Client.IsValid() {
		one.Client = ex.Client.WithZone("").String()
	}
	if ex.Version != nil {
		one.Version = usage.Clean(ex.Version.Name)
	}
	if ex.Rejection != nil {
		one.Reason = ex.Rejection.Reason.String()
	}
	if n := len(ex.Operations); n > 0 {
		one.Operation = hide.text([]byte(ex.Operations[n-1].Name))
	}
	for at := ex; at != nil; at = at.Child {
		if at.Session != nil {
			identify(&one, at)
			break
		}
	}
	s.addHeaders(&one, ex, hide)
	if d.IsGraphQL() && call.Length != 0 {
		one.Body, one.Cut = hide.body(ex)
	}
	for _, text := range []*string{&one.Method, &one.Host, &one.Operation, &one.KeyName, &one.Version} {
		*text = (*text)[:min(len(*text), usage.MaxText)]
		*text = strings.ToValidUTF8(*text, "")
	}
	return one
}

// identify notes who called. The policies are noted of callers who have them by the
// claims of a token: no key has them later.
func identify(one *usage.Sample, ex *pipeline.Exchange) {
	one.Key, one.KeyName = usage.KeyOf(ex.KeyHash, !strings.HasPrefix(ex.KeyHash, ex.KeyName)), usage.Clean(ex.KeyName)
	if ex.Claims == nil {
		return
	}
	for _, id := range ex.Session.Policies() {
		if len(one.Policies) < 50 && len(id) <= usage.MaxText {
			one.Policies = append(one.Policies, usage.Clean(id))
		}
	}
}

// addHeaders adds the header lines that rules look at, but for those that may
// authenticate.
func (s *Samples) addHeaders(one *usage.Sample, ex *pipeline.Exchange, hide *hiding) {
	chosen := ""
	if v := ex.API.Definition.Selector; v != nil && v.Location == "header" {
		chosen = textproto.CanonicalMIMEHeaderKey(v.Key)
	}
	call := ex.Call
	for i := range call.Fields {
		f := &call.Fields[i]
		name := textproto.CanonicalMIMEHeaderKey(string(call.NameOf(f)))
		if name == "Content-Length" && call.Length == 0 {
			one.Headers = append(one.Headers, "Content-Length: 0")
			continue
		}
		if !s.headers[name] && name != chosen || hide.isSecret(name) {
			continue
		}
		line := name + ": " + hide.text(call.ValueOf(f))
		if len(line) <= usage.MaxText && len(one.Headers) < 50 {
			one.Headers = append(one.Headers, line)
		}
	}
}

// authPlaces returns the names of the headers, parameters and cookies in which the
// callers of an API authenticate, in lower case.
func authPlaces(d *definition.API) map[string]bool {
	places := map[string]bool{"authorization": true, "cookie": true, "proxy-authorization": true}
	for i := range definition.AuthModes {
		at := d.Place(definition.AuthModes[i].Config)
		for _, name := range []string{at.Header(), at.ParamName, at.CookieName} {
			places[strings.ToLower(name)] = true
		}
	}
	delete(places, "")
	return places
}
