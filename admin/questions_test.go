package admin

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// A question about a refused request ends the polls of gateways, which get it once. The
// record that one of them sends reaches the user who asked.
func TestGatewaysAreAskedForRefusedRequests(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "a", "/a")
	tag := b.atRevision("1").Header.Get("ETag")
	asked := func(seen string) string {
		return b.Call("GET", "/api/gateway/bundle?wait=30s", gatewayToken, "", "If-None-Match", tag, "X-Sluice-Asked", seen).Header.Get("X-Sluice-Asked")
	}
	const id = "0123456789abcdef0123456789abcdef"
	answers := make(chan json.RawMessage, 2)
	for range 2 { // the same id is asked for again
		name := make(chan string, 1)
		go func() { name <- asked("") }()
		go func() {
			found, err := b.server.Refusal(t.Context(), id)
			if err != nil {
				t.Error(err)
			}
			answers <- found
		}()
		var got string
		select {
		case got = <-name:
		case <-time.After(time.Minute):
			t.Fatal("the poll goes on")
		}
		if !strings.HasSuffix(got, "."+id) {
			t.Fatalf("the gateway was asked %q", got)
		}
		b.Call("POST", "/api/gateway/refusals", b.editor, `{"id":"`+id+`","refusal":{"status":502}}`).Want(403)
		b.Call("POST", "/api/gateway/refusals", gatewayToken, `{"id":""}`).Want(400)
		b.Call("POST", "/api/gateway/refusals", gatewayToken, `{"id":"`+id+`","refusal":{"status":502}}`).Want(200)
		if found := <-answers; string(found) != `{"status":502}` {
			t.Errorf("the answer is %q", found)
		}
	}
	if found, err := b.server.Refusal(t.Context(), "unknown"); err != nil || found != nil {
		t.Errorf("an id that no gateway remembers: %q, %v", found, err)
	}
}
