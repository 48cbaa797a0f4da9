package system

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

// TestEventsReachTheStoredWebhookThatAnAPINames: also when only the webhook changes.
func TestEventsReachTheStoredWebhookThatAnAPINames(t *testing.T) {
	t.Parallel()
	messages := make(chan string, 1000)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		messages <- r.Method + " " + r.URL.Path + " " + r.Header.Get("X-Own")
	}))
	t.Cleanup(receiver.Close)
	s := rig.NewUp(t, rig.DataDir(t), settings{"events.private_targets": "allow"}).StartReady()
	rest := s.Rest()
	rest.Do("POST", "/api/hooks", object{"id": "shared", "name": "shared", "method": "POST", "target_path": receiver.URL + "/first", "header_map": object{"X-Own": "mine"}})
	api := rig.APIDef("watched", receiver.URL, false)
	api["event_handlers"] = object{"events": object{"AuthFailure": []object{{"handler_name": "eh_web_hook_handler", "handler_meta": object{"id": "shared"}}}}}
	rest.Do("POST", "/api/apis", api)

	// Calls are repeated, as those before the gateway has the change reach another address or
	// none.
	gets := func(want string) {
		t.Helper()
		s.Await("the webhook to get "+want, func() error {
			got, err := rig.Send("GET", s.Traffic+"/watched/", nil, "Authorization", "unknown-key")
			if err != nil || got.Status != http.StatusForbidden {
				return errors.Join(err, errors.New(got.String()))
			}
			for {
				select {
				case m := <-messages:
					if m == want {
						return nil
					}
				case <-time.After(100 * time.Millisecond):
					return errors.New("no such message yet")
				}
			}
		})
	}
	gets("POST /first mine")
	rest.Do("PUT", "/api/hooks/shared", object{"name": "shared", "method": "PUT", "target_path": receiver.URL + "/second"})
	gets("PUT /second ")
}
