package definition

import (
	"strings"
	"testing"
)

const storedHandler = `{"api_id":"a","name":"a","use_keyless":true,"proxy":{"listen_path":"/a/","target_url":"http://up.example"},
	"event_handlers":{"events":{"QuotaExceeded":[{"handler_name":"eh_web_hook_handler","handler_meta":META}]}}}`

func TestHandlersTakeWhatTheyLackFromTheStoredWebhook(t *testing.T) {
	stored := &Webhook{ID: "w", Name: "stored", Method: "POST", Target: "https://hooks.example/", TemplateFile: "t.json", Headers: map[string]string{"A": "stored"}, Cooldown: 9}
	for meta, want := range map[string]string{
		`{"id":"w"}`: "stored POST https://hooks.example/ t.json  stored 9",
		`{"id":"w","name":"own","method":"PUT","template":"{}","header_map":{"A":"own"},"event_timeout":1}`: "own PUT https://hooks.example/  {} own 1",
		`{"id":"w","target_path":"https://own.example/"}`:                                                   "  https://own.example/    0",
		`{"id":"w","disabled":true}`:                                                                        "      0",
		`{"id":"other"}`:                                                                                    "      0",
	} {
		api, err := ParseAPI([]byte(strings.Replace(storedHandler, "META", meta, 1)))
		if err != nil {
			t.Errorf("%s: %v", meta, err)
			continue
		}
		changed := api.TakeWebhooks(func(id string) *Webhook {
			if id == stored.ID {
				return stored
			}
			return nil
		})
		m := api.EventHandlers.Events["QuotaExceeded"][0].Meta
		got := strings.Join([]string{m.Name, m.Method, m.Target, m.TemplateFile, m.Template, m.Headers["A"], string(rune('0' + m.Cooldown))}, " ")
		if got != want || changed != strings.Contains(want, "hooks.example") {
			t.Errorf("%s: %q, %v; want %q", meta, got, changed, want)
		}
	}
}

func TestGatewaysWithoutAnAdminRefuseStoredWebhooks(t *testing.T) {
	_, err := ParseFileAPI([]byte(strings.Replace(storedHandler, "META", `{"id":"w"}`, 1)))
	if err == nil || !strings.Contains(err.Error(), `event_handlers.events["QuotaExceeded"][0].handler_meta.id: refers to a stored webhook`) {
		t.Errorf("%v", err)
	}
	if _, err := ParseFileAPI([]byte(strings.Replace(storedHandler, "META", `{"id":"w","target_path":"http://up.example"}`, 1))); err != nil {
		t.Error(err)
	}
}
