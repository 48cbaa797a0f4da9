package admin

import (
	"fmt"
	"sync"
	"testing"

	"github.com/sluicegate/sluice/internal/testenv/admintest"
)

func TestACallThatIsSentAgainHasItsFirstAnswer(t *testing.T) {
	b := start(t)
	send := func(key, body string) *admintest.Answer {
		return b.Call("POST", "/api/apis", b.editor, body, "Idempotency-Key", key)
	}
	first := send("one", anAPI("a", "/a")).Want(200)
	again := send("one", anAPI("a", "/a")).Want(200)
	if again.Text("Meta") != first.Text("Meta") || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("first %s, then %s", first.Body, again.Body)
	}
	send("one", anAPI("b", "/b")).Want(409).Says("another call")
	send("two", anAPI("a", "/a")).Want(409) // the path is taken: nothing was made, and a right one may follow
	send("two", anAPI("c", "/c")).Want(200)
	b.Call("GET", "/api/apis", b.viewer, "").Want(200).Says(`"pages":1`)
	b.Call("POST", "/api/apis", b.editor, anAPI("d", "/d"), "Idempotency-Key", "caf\xc3\xa9").Want(400).Says("Idempotency-Key")
}

func TestACredentialIsShownOnceHoweverOftenItIsAskedFor(t *testing.T) {
	b := start(t)
	api := b.Call("POST", "/api/apis", b.editor, anAPI("a", "/a")).Want(200).Text("Meta")
	body := fmt.Sprintf(`{"access_rights":{%q:{"api_id":%q}}}`, api, api)
	b.Call("POST", "/api/keys", b.editor, body, "Idempotency-Key", "k").Want(200).Says(`"key"`)
	b.Call("POST", "/api/keys", b.editor, body, "Idempotency-Key", "k").Want(409).Says("shown that once")
}

func TestOfManyThatSendOneCallAtOnceItIsCarriedOutOnce(t *testing.T) {
	b := start(t)
	var all sync.WaitGroup
	ids := make(chan string, 20)
	for range cap(ids) {
		all.Go(func() {
			r := b.Call("POST", "/api/apis", b.editor, anAPI("a", "/a"), "Idempotency-Key", "same")
			if r.Status == 200 {
				ids <- r.Text("Meta")
			} else if r.Status != 409 {
				t.Errorf("answer %d: %s", r.Status, r.Body)
			}
		})
	}
	all.Wait()
	close(ids)
	made := map[string]bool{}
	for id := range ids {
		made[id] = true
	}
	if len(made) != 1 {
		t.Errorf("%d APIs were made", len(made))
	}
}
