package definition

import (
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition/object"
)

func TestHandlersAreReadAndChecked(t *testing.T) {
	hook := func(meta string) string {
		return `{"events":{"QuotaExceeded":[{"handler_name":"eh_web_hook_handler","handler_meta":{` + meta + `}}]}}`
	}
	for name, c := range map[string]struct{ block, want string }{
		"nothing":        {``, ""},
		"null":           {`null`, ""},
		"log":            {`{"events":{"AuthFailure":[{"handler_name":"eh_log_handler","handler_meta":{"prefix":"x"}}]}}`, ""},
		"webhook":        {hook(`"method":"POST","target_path":"https://a.example/b","template_path":"t.json","header_map":{"X-A":"b"},"event_timeout":5`), ""},
		"off":            {hook(`"disabled":true`), ""},
		"no such event":  {`{"events":{"Quota":[{"handler_name":"eh_log_handler"}]}}`, `events["Quota"]: is not an event`},
		"no such kind":   {`{"events":{"AuthFailure":[{"handler_name":"eh_dynamic_handler"}]}}`, `events["AuthFailure"][0].handler_name: must be`},
		"no target":      {hook(``), "handler_meta.target_path: must be"},
		"other scheme":   {hook(`"target_path":"file:///etc/passwd"`), "handler_meta.target_path: must be"},
		"control":        {hook(`"target_path":"http://a.example","header_map":{"X":"a\r\nB: c"}`), `header_map["X"]: must not have control`},
		"header name":    {hook(`"target_path":"http://a.example","header_map":{"X Y":"a"}`), `header_map["X Y"]: must have a name`},
		"framing header": {hook(`"target_path":"http://a.example","header_map":{"content-length":"1"}`), "the gateway writes this header itself"},
		"cool-down":      {hook(`"target_path":"http://a.example","event_timeout":-1`), "event_timeout: must be"},
		"another folder": {hook(`"target_path":"http://a.example","template_path":"../x"`), "template_path: must be"},
		"wrong type":     {`{"events":[]}`, "events: "},
	} {
		_, faults := checked(c.block, (*EventHandlers).check)
		switch {
		case c.want == "" && len(faults) > 0:
			t.Errorf("%s: %v", name, faults)
		case c.want != "" && (len(faults) != 1 || !strings.Contains(faults[0].Path+": "+faults[0].Message, c.want)):
			t.Errorf("%s: %v, want %s", name, faults, c.want)
		}
	}
}

func FuzzEventHandlers(f *testing.F) {
	f.Add([]byte(`{"events":{"AuthFailure":[{"handler_name":"eh_web_hook_handler","handler_meta":{"target_path":"http://a","header_map":{"a":"b"}}}]}}`))
	f.Fuzz(func(t *testing.T, block []byte) {
		if object.Check(block, 1<<20) != nil {
			return
		}
		on, faults := checked(string(block), (*EventHandlers).check)
		if len(faults) == 0 && on != nil {
			for event, list := range on.Events {
				for _, h := range list {
					if h.Name == WebhookHandler && !h.Meta.Disabled && CheckWebhook(h.Meta.Target) != "" {
						t.Errorf("%s: %q", event, h.Meta.Target)
					}
				}
			}
		}
	})
}
