package auth

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

// accessToken stores a token of a client, which ends at a time.
func accessToken(t *testing.T, st *store, identity string, ends time.Time) string {
	t.Helper()
	shown := credential.Generate(hasher.Prefix)
	row := definition.NewSuccessor(identity, "")
	row.Expires = ends.Unix()
	if err := st.Put(t.Context(), hasher.Hash(shown), row); err != nil {
		t.Fatal(err)
	}
	return shown
}

func TestTokensOfAClientStandForItsSession(t *testing.T) {
	for _, size := range []int{1000, 1} { // all cached, or one at a time
		synctest.Test(t, func(t *testing.T) {
			st := newStore()
			s := watched(t, st, func(o *SessionOptions) { o.Size = size })
			stage := compiled(t, New(s, 3), &definition.API{UseOAuth2: true, Name: `the "API"`})
			plain := compiled(t, New(s, 3), &definition.API{})
			ask := func(stage pipeline.Stage, token string) *pipeline.Exchange {
				ex := exchange("Authorization", token)
				stage.Handle(ex)
				return ex
			}
			inner := issue(t, st, &definition.Session{Alias: "app", Extra: &definition.Extra{OAuthClientID: "c1"}})
			identity := hasher.Hash(inner)
			first, second := accessToken(t, st, identity, time.Now().Add(time.Hour)), accessToken(t, st, identity, time.Now().Add(2*time.Hour))
			for range 3 {
				for _, one := range []string{first, "Bearer " + second} {
					ex := ask(stage, one)
					if ex.Rejection != nil || ex.KeyHash != identity || ex.Session.Alias != "app" || ex.InGrace {
						t.Fatalf("%+v, %s", ex.Rejection, ex.KeyHash)
					}
				}
			}
			if ex := ask(plain, first); ex.Rejection != unknown {
				t.Errorf("a token where keys are asked for: %+v", ex.Rejection)
			}
			if ex := ask(stage, inner); ex.Rejection == nil || ex.Rejection.Message != unknownToken {
				t.Errorf("the client without a token: %+v", ex.Rejection)
			}
			key := issue(t, st, &definition.Session{Alias: "key"})
			if ex := ask(stage, key); ex.Rejection == nil || ex.Rejection.Message != unknownToken || ex.Rejection.Challenge != `Bearer realm="the \"API\"", error="invalid_token"` {
				t.Errorf("a key where tokens are asked for: %+v", ex.Rejection)
			}
			if ex := ask(stage, ""); ex.Rejection == nil || ex.Rejection.Status != 401 || ex.Rejection.Message != missing.Message {
				t.Errorf("nothing: %+v", ex.Rejection)
			}
			time.Sleep(time.Hour)
			if ex := ask(stage, first); ex.Rejection != expired {
				t.Errorf("a token after its time: %+v", ex.Rejection)
			}
			if ex := ask(stage, second); ex.Rejection != nil {
				t.Errorf("another token then: %+v", ex.Rejection)
			}
			if err := st.Delete(t.Context(), hasher.Hash(second)); err != nil {
				t.Fatal(err)
			}
			rewrite(t, st, inner) // revoking a token changes the client's session, too
			if ex := ask(stage, second); ex.Rejection == nil || ex.Rejection.Message != unknownToken {
				t.Errorf("a token that was revoked: %+v", ex.Rejection)
			}
		})
	}
}

func TestTokensThatAreKnownCostNoAllocation(t *testing.T) {
	st := newStore()
	s := watched(t, st, func(*SessionOptions) {})
	stage := compiled(t, New(s, 3), &definition.API{UseOAuth2: true})
	inner := issue(t, st, &definition.Session{Extra: &definition.Extra{OAuthClientID: "c1"}})
	ex := exchange("Authorization", "Bearer "+accessToken(t, st, hasher.Hash(inner), time.Now().Add(time.Hour)))
	if stage.Handle(ex); ex.Rejection != nil {
		t.Fatal(ex.Rejection)
	}
	if n := testing.AllocsPerRun(1000, func() { stage.Handle(ex) }); n != 0 && !race.Enabled {
		t.Errorf("%v allocations", n)
	}
}
