package definition

import (
	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

// streamingPath is where the event streams of a definition are.
const streamingPath = "x-svc-streaming"

// HasStreams reports whether the API serves event streams.
func (a *API) HasStreams() bool {
	return len(a.Streaming) > 0 && says(part(a.Streaming, "streams"))
}

// Streams returns the event streams of a definition that Validate has passed, ordered by
// name; o.SkipScripts may be set. References to secrets are replaced by stand-ins: call it
// on InForce to use the streams. The error is *Problems: with the settings of a gateway in
// o there may be some that Validate does not find.
func (a *API) Streams(o streams.Options) ([]streams.Stream, error) {
	all, faults := streams.Parse(a.streamsToCheck(), o)
	var p Problems
	p.join(streamingPath, asProblems(faults...))
	if err := p.err(); err != nil {
		return nil, err
	}
	return all, nil
}

// streamsToCheck returns the event streams with stand-ins for references to secrets, of
// which the secrets are checked where they are known.
func (a *API) streamsToCheck() []byte { return a.streamsWith(nil) }

// streamsWith is streamsToCheck with texts that some places have in place of stand-ins, by
// their paths below x-svc-streaming.
func (a *API) streamsWith(texts map[string]string) []byte {
	if a.LiteralSecrets || !MayReferToSecrets(a.Streaming) {
		return a.Streaming
	}
	document := streams.Read(a.Streaming)
	if document == nil {
		return a.Streaming
	}
	places := document.Secrets()
	for i := range places {
		place := &places[i]
		if text, ok := texts[place.Path]; ok {
			place.Set(text)
			continue
		}
		place.Set(standIn(place.Text, place.StandIn))
	}
	return document.Raw()
}

// standIn returns a text with stand-ins for its references to secrets: start for one at the
// beginning.
func standIn(from, start string) (text string) {
	rest := eachRef(from, func(before string, _ SecretRef) {
		if text += before; text == "" {
			text = start
		} else {
			text += streams.StandIn
		}
	})
	return text + rest
}

// checkStreams checks the event streams, and what they exclude.
func (p *Problems) checkStreams(a *API) {
	if len(a.Streaming) == 0 {
		return
	}
	_, err := a.Streams(streams.Options{})
	p.join("", err)
	if a.HasStreams() && a.IsGraphQL() {
		p.addf(streamingPath+".streams", "must be empty beside graphql.enabled: an API serves event streams or GraphQL; make two APIs")
	}
}

// streamSecrets calls do with the texts of event streams in which references count.
func (a *API) streamSecrets(do func(secretPlace)) {
	if !MayReferToSecrets(a.Streaming) {
		return
	}
	document := streams.Read(a.Streaming)
	if document == nil {
		return
	}
	changed := false
	done := func() {
		if changed {
			changed, a.Streaming = false, document.Raw()
		}
	}
	for _, place := range document.Secrets() {
		set := func(text string) {
			place.Set(text)
			changed = true
		}
		do(secretPlace{path: object.Member(streamingPath, place.Path), text: place.Text, set: set, escape: place.Escape, done: done})
	}
}
