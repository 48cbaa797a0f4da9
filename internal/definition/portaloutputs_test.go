package definition

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const portalStreams = `{"api_id":"a","name":"a","org_id":"o","use_keyless":true,"proxy":{"listen_path":"/a/","target_url":""},
	"version_data":{"not_versioned":true,"versions":{"Default":{"name":"Default"}}},%s
	"x-svc-streaming":{"streams":{
		"one.two":{"input":{"http_server":{"path":"/one"}},
			"output":{"broker":{"outputs":[
				{"portal_webhook":{"event_type":"b.c","portal_url":"https://portal.example/","secret":"%s"}},
				{"broker":{"outputs":[{"portal_webhook":{"event_type":"a","portal_url":"https://portal.example/","secret":"0123456789abcdef"}}]}}
			]}},
			"dead_letter":{"portal_webhook":{"event_type":"dead","portal_url":"https://portal.example/","secret":"fedcba9876543210"}}},
		"two":{"input":{"http_server":{"path":"/two"}},
			"output":{"http_client":{"url":"https://service.example/","headers":{"A":"{secret:other}"}}}},
		"three":{"input":{"http_server":{"path":"/three"}},
			"output":{"portal_webhook":{"event_type":"a","portal_url":"https://portal.example/","secret":"0123456789abcdef"}}}}}}`

func withPortal(t *testing.T, more, secret string) *API {
	t.Helper()
	api, err := ParseAPI(fmt.Appendf(nil, portalStreams, more, secret))
	if err != nil {
		t.Fatal(err)
	}
	return api
}

func TestOutputsToThePortalAreFoundWhereverTheyAre(t *testing.T) {
	api := withPortal(t, "", "x {secret:portal} y")
	got, err := api.PortalOutputs(func(ref SecretRef) (string, error) {
		if ref.Name != "portal" {
			t.Errorf("%s was looked up", ref)
		}
		return "resolved secret", nil
	})
	want := []PortalOutput{
		{"one.two", "b.c", "x resolved secret y"}, {"one.two", "a", "0123456789abcdef"}, {"one.two", "dead", "fedcba9876543210"}, {"three", "a", "0123456789abcdef"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("outputs %+v, %v", got, err)
	}
	if events := api.PortalEvents(); !slices.Equal(events, []string{"a", "b.c", "dead"}) {
		t.Errorf("events %q", events)
	}
	if events := new(API).PortalEvents(); events == nil || len(events) > 0 {
		t.Errorf("without streams: %q", events)
	}
}

func TestASecretThatIsMissingIsOneThatNobodyKnows(t *testing.T) {
	api := withPortal(t, "", "{secret:portal}")
	seen := make(map[string]bool)
	for range 2 {
		got, err := api.PortalOutputs(func(SecretRef) (string, error) { return "", ErrNoSecret })
		if len(got) != 4 || len(got[0].Secret) < 32 || seen[got[0].Secret] || strings.Contains(got[0].Secret, "portal") {
			t.Errorf("outputs %+v", got)
		}
		wrong, ok := errors.AsType[*Problems](err)
		if !ok || len(*wrong) != 1 || !strings.HasPrefix(err.Error(), `x-svc-streaming.streams["one.two"].output.broker.outputs[0].portal_webhook.secret: {secret:portal}: does not exist`) {
			t.Errorf("error %v", err)
		}
		seen[got[0].Secret] = true
	}
}

func TestSecretsOfThePortalAreNotThoseOfGateways(t *testing.T) {
	for secret, says := range map[string]string{
		"{env:SLUICE_SECRET_PORTAL}": "refers to {env:SLUICE_SECRET_PORTAL}, which gateways alone can read",
		"{file:/run/secrets/portal}": "use a sealed secret, {secret:NAME}",
	} {
		got := withPortal(t, "", secret).GatewayFiles()
		if len(got) != 1 || !strings.Contains(got[0].Message, says) || !strings.HasSuffix(got[0].Path, "outputs[0].portal_webhook.secret") {
			t.Errorf("%s: %v", secret, got)
		}
		if got := withPortal(t, `"disable_secret_references":true,`, secret).GatewayFiles(); len(got) > 0 {
			t.Errorf("%s as literal text: %v", secret, got)
		}
	}
	if got := withPortal(t, "", "{secret:portal}").GatewayFiles(); len(got) > 0 {
		t.Error(got)
	}
}
