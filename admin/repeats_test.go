package admin

import (
	"fmt"
	"sync"
	"testing"
)

func TestACallThatIsSentAgainHasItsFirstAnswer(t *testing.T) {
	b := start(t)
	send := func(key, body string) *answer {
		return b.call("POST", "/api/apis", b.editor, body, "Idempotency-Key", key)
	}
	first := send("one", anAPI("a", "/a")).want(200)
	again := send("one", anAPI("a", "/a")).want(200)
	if again.text("Meta") != first.text("Meta") || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("first %s, then %s", first.body, again.body)
	}
	send("one", anAPI("b", "/b")).want(409).says("another call")
	send("two", anAPI("a", "/a")).want(409) // the path is taken: nothing was made, and a right one may follow
	send("two", anAPI("c", "/c")).want(200)
	b.call("GET", "/api/apis", b.viewer, "").want(200).says(`"pages":1`)
	b.call("POST", "/api/apis", b.editor, anAPI("d", "/d"), "Idempotency-Key", "caf\xc3\xa9").want(400).says("Idempotency-Key")
}

func TestACredentialIsShownOnceHoweverOftenItIsAskedFor(t *testing.T) {
	b := start(t)
	api := b.call("POST", "/api/apis", b.editor, anAPI("a", "/a")).want(200).text("Meta")
	body := fmt.Sprintf(`{"access_rights":{%q:{"api_id":%q}}}`, api, api)
	b.call("POST", "/api/keys", b.editor, body, "Idempotency-Key", "k").want(200).says(`"key"`)
	b.call("POST", "/api/keys", b.editor, body, "Idempotency-Key", "k").want(409).says("shown that once")
}

func TestOfManyThatSendOneCallAtOnceItIsCarriedOutOnce(t *testing.T) {
	b := start(t)
	var all sync.WaitGroup
	ids := make(chan string, 20)
	for range cap(ids) {
		all.Go(func() {
			r := b.call("POST", "/api/apis", b.editor, anAPI("a", "/a"), "Idempotency-Key", "same")
			if r.status == 200 {
				ids <- r.text("Meta")
			} else if r.status != 409 {
				t.Errorf("answer %d: %s", r.status, r.body)
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
