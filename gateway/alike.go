package gateway

import (
	"encoding/binary"
	"slices"

	"github.com/sluicegate/sluice/gateway/cache"
	"github.com/sluicegate/sluice/gateway/handover"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/transform"
)

// The stages of an API that answers all who ask the same alike, as bits of their
// places in the lists: those that look at nothing of a request that an API in front
// does not keep answers by. What is on none of these lists says no, be it new. One
// that keeps answers itself needs nobody in front to do so.
var (
	alikeEntry   = kindsOf(entryStages, "org")
	alikeRequest = kindsOf(requestStages, "size", "overload", "tunnels", "apilimit", "transform")
	alikeAnswer  = kindsOf(answerStages, "transform_answer")
)

// numberForm gives an API a number that answers all who ask the same alike.
func (s *Stages) numberForm(api *compiled) {
	def := api.Definition
	if s.forms == nil || !def.UseKeyless || len(api.Versions) != 1 || !cache.AsksAsUsual(def) {
		return
	}
	v := api.Versions[0]
	if isAlike(api.Entry, api.EntryMade, alikeEntry) && isAlike(v.Request, v.RequestMade, alikeRequest) && isAlike(v.Response, v.ResponseMade, alikeAnswer) {
		api.Form, api.Onward = s.forms.Add(1), onward(v.Upstream)
	}
}

// isAlike tells whether stages are of some kinds alone, and do the same to all calls
// of a path.
func isAlike(stages []pipeline.Stage, made, kinds pipeline.Made) bool {
	return made&^kinds == 0 && !slices.ContainsFunc(stages, transform.Varies)
}

// onward returns the API that a stage which calls hands requests over to, or nil. No
// stage has the choice between several: only the place of a rewrite has.
func onward(stage pipeline.Stage) *pipeline.Ref {
	switch s := stage.(type) {
	case *handover.Stage:
		return s.Ref()
	case interface{ Parts() []pipeline.Stage }:
		for _, part := range s.Parts() {
			if to := onward(part); to != nil {
				return to
			}
		}
	}
	return nil
}

// onwardByPlace is onward for each of the places that Outgoing.Elsewhere counts, nil
// when none of them is another API.
func onwardByPlace(stage pipeline.Stage) []*pipeline.Ref {
	parts := []pipeline.Stage{stage}
	if e, ok := stage.(*elsewhere); ok {
		parts = e.parts
	}
	places, some := make([]*pipeline.Ref, len(parts)), false
	for i, part := range parts {
		places[i] = onward(part)
		some = some || places[i] != nil
	}
	if !some {
		return nil
	}
	return places
}

// keepBefore tells the stage that keeps answers, if there is one among those made for
// a version, to which APIs its calls go on.
func keepBefore(stages []pipeline.Stage, upstream pipeline.Stage) {
	if keeping := cache.StageOf(stages); keeping != nil {
		keeping.Before(onwardByPlace(upstream))
	}
}

// AppendForms implements pipeline.Others.
func (s *serving) AppendForms(dst []byte, ex *pipeline.Exchange, to *pipeline.Ref) ([]byte, bool) {
	return s.snapshot.appendForms(dst, ex, to)
}

// AppendForms implements pipeline.Others.
func (w *walk) AppendForms(dst []byte, ex *pipeline.Exchange, to *pipeline.Ref) ([]byte, bool) {
	return w.snapshot.appendForms(dst, ex, to)
}

// AppendForms implements pipeline.Others.
func (endOfWay) AppendForms(dst []byte, _ *pipeline.Exchange, _ *pipeline.Ref) ([]byte, bool) {
	return dst, false
}

// appendForms appends the number of each API that ex goes on to. As they are looked up
// in the snapshot that serves the request, and numbers never come again, what was
// answered by APIs that have changed meanwhile is found by nobody.
func (s *Snapshot) appendForms(dst []byte, ex *pipeline.Exchange, to *pipeline.Ref) ([]byte, bool) {
	api := ex.API
	for left := pipeline.MaxHandovers - ex.Handovers(); to != nil; left-- {
		if left == 0 {
			return dst, false
		}
		if api = s.other(api, to); api == nil || api.Form == 0 {
			return dst, false
		}
		dst, to = binary.LittleEndian.AppendUint64(dst, api.Form), api.Onward
	}
	return dst, true
}
