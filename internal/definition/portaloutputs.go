package definition

import (
	"crypto/rand"
	"errors"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

// A PortalOutput is an output of event streams by which messages reach the portal.
type PortalOutput struct {
	Stream    string
	EventType string
	Secret    string // that messages are signed with
}

// portalSecret ends the paths of the secrets of portal_webhook outputs.
const portalSecret = ".portal_webhook.secret"

// PortalOutputs returns the portal_webhook outputs of the event streams, with the secrets
// that lookup returns in place of references. The error is about secrets that are not to be
// had: in place of each such an output has one that nobody knows. A definition whose
// streams are not valid has no outputs.
func (a *API) PortalOutputs(lookup func(SecretRef) (string, error)) ([]PortalOutput, error) {
	texts, missing := a.portalSecrets(lookup)
	all, faults := streams.Parse(a.streamsWith(texts), streams.Options{SkipScripts: true})
	if len(faults) > 0 {
		var p Problems
		p.join(streamingPath, asProblems(faults...))
		return nil, errors.Join(missing, p.err())
	}
	var found []PortalOutput
	for i := range all {
		for _, w := range all[i].PortalWebhooks() {
			found = append(found, PortalOutput{all[i].Name, w.EventType, string(w.Secret)})
		}
	}
	return found, missing
}

// portalSecrets returns the secrets of portal_webhook outputs by their paths below
// x-svc-streaming.
func (a *API) portalSecrets(lookup func(SecretRef) (string, error)) (texts map[string]string, missing error) {
	var p Problems
	texts = make(map[string]string)
	a.eachPortalSecret(func(place streams.SecretPlace) {
		text, err := replaceSecrets(place.Text, nil, lookup)
		if err != nil {
			p.addf(object.Member(streamingPath, place.Path), "%s", err)
			text = rand.Text() + rand.Text()
		}
		texts[place.Path] = text
	})
	return texts, p.err()
}

// eachPortalSecret calls do with the secrets of portal_webhook outputs that have references.
func (a *API) eachPortalSecret(do func(streams.SecretPlace)) {
	if a.LiteralSecrets || !MayReferToSecrets(a.Streaming) {
		return
	}
	document := streams.Read(a.Streaming)
	if document == nil {
		return
	}
	for _, place := range document.Secrets() {
		if strings.HasSuffix(place.Path, portalSecret) && hasRef(place.Text) {
			do(place)
		}
	}
}

// PortalEvents returns the types of events that streams of the API send to webhooks of
// developers, each once and in alphabetical order; never nil.
func (a *API) PortalEvents() []string {
	types := []string{}
	if !a.HasStreams() {
		return types
	}
	outputs, _ := a.PortalOutputs(func(SecretRef) (string, error) { return streams.StandIn, nil }) // nothing is missing, and streams that are not valid send nothing
	for _, o := range outputs {
		types = append(types, o.EventType)
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// unreadableSecrets reports secrets that an admin has to know as well, and cannot read as
// they are variables or files of gateways.
func (a *API) unreadableSecrets(p *Problems) {
	a.eachPortalSecret(func(place streams.SecretPlace) {
		eachRef(place.Text, func(_ string, ref SecretRef) {
			if ref.Kind != SealedSecret {
				p.addf(object.Member(streamingPath, place.Path), "refers to %s, which gateways alone can read: the portal checks signatures by this secret; use a sealed secret, {secret:NAME}", ref)
			}
		})
	})
}
