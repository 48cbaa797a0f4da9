package jwks

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/sluicegate/sluice/internal/dialguard"
)

// issuer publishes keys, and counts who asks.
type issuer struct {
	*httptest.Server
	mu     sync.Mutex
	answer func(w http.ResponseWriter)
	asked  atomic.Int32
}

func newIssuer(t *testing.T, keys ...jose.JSONWebKey) *issuer {
	t.Helper()
	i := &issuer{}
	i.publish(keys...)
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		i.asked.Add(1)
		i.mu.Lock()
		defer i.mu.Unlock()
		i.answer(w)
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) publish(keys ...jose.JSONWebKey) {
	body, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
	if err != nil {
		panic(err)
	}
	i.say(func(w http.ResponseWriter) { _, _ = w.Write(body) })
}

func (i *issuer) say(answer func(http.ResponseWriter)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer = answer
}

func down(w http.ResponseWriter) { http.Error(w, "down", http.StatusServiceUnavailable) }

func ecKey(t *testing.T, id string) jose.JSONWebKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return jose.JSONWebKey{Key: &key.PublicKey, KeyID: id, Algorithm: "ES256", Use: "sig"}
}

// newSets returns sets whose clock the test moves.
func newSets() (*Sets, func(time.Duration)) {
	s := New(Options{
		Addresses: dialguard.Policy{Private: true}, Timeout: 30 * time.Second, Refresh: time.Minute,
		Retry: 10 * time.Second, Stale: time.Hour, Log: slog.New(slog.DiscardHandler),
	})
	var mu sync.Mutex
	at := time.Unix(1_800_000_000, 0)
	s.now = func() time.Time { mu.Lock(); defer mu.Unlock(); return at }
	return s, func(d time.Duration) { mu.Lock(); defer mu.Unlock(); at = at.Add(d) }
}

func mustFind(t *testing.T, s *Set, id string) {
	t.Helper()
	if keys, err := s.Find(id); err != nil || len(keys) != 1 {
		t.Fatalf("key %q: %d keys, %v", id, len(keys), err)
	}
}

func TestKeysAreFetchedOnceForAllWhoNeedThem(t *testing.T) {
	i := newIssuer(t, ecKey(t, "a"))
	sets, _ := newSets()
	set := sets.Get(i.URL)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { mustFind(t, set, "a") })
	}
	wg.Wait()
	if n := i.asked.Load(); n != 1 {
		t.Errorf("the issuer was asked %d times", n)
	}
	if sets.Get(i.URL) != set {
		t.Error("one address has two sets")
	}
}

func TestANewKeyIsFoundAndAnUnknownOneDoesNotFloodTheIssuer(t *testing.T) {
	first, second := ecKey(t, "a"), ecKey(t, "b")
	i := newIssuer(t, first)
	sets, pass := newSets()
	set := sets.Get(i.URL)
	mustFind(t, set, "a")
	before := set.Generation()
	i.publish(first, second)
	for range 100 {
		if _, err := set.Find("b"); !errors.Is(err, ErrUnknownKey) {
			t.Fatal(err)
		}
	}
	if n := i.asked.Load(); n != 1 {
		t.Errorf("the issuer was asked %d times within the retry time", n)
	}
	pass(11 * time.Second)
	mustFind(t, set, "b")
	if set.Generation() == before {
		t.Error("other keys have the same generation")
	}
	pass(11 * time.Second)
	before = set.Generation()
	if _, err := set.Find("c"); !errors.Is(err, ErrUnknownKey) {
		t.Error(err)
	}
	if set.Generation() != before {
		t.Error("the same keys have another generation")
	}
}

func TestAKeyThatItsIssuerTookBackIsGoneAtTheNextRefresh(t *testing.T) {
	first, second := ecKey(t, "a"), ecKey(t, "b")
	i := newIssuer(t, first, second)
	sets, pass := newSets()
	set := sets.Get(i.URL)
	mustFind(t, set, "a")
	i.publish(second)
	sets.refresh(t.Context())
	pass(11 * time.Second)
	if _, err := set.Find("a"); !errors.Is(err, ErrUnknownKey) {
		t.Error(err)
	}
	mustFind(t, set, "b")
}

func TestKeysAreUsedForAWhileWhenTheirIssuerIsAway(t *testing.T) {
	i := newIssuer(t, ecKey(t, "a"))
	sets, pass := newSets()
	set := sets.Get(i.URL)
	mustFind(t, set, "a")
	i.say(down)
	pass(59 * time.Minute)
	sets.refresh(t.Context())
	mustFind(t, set, "a")
	if _, err := set.Find("b"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a key that nobody can tell anything of: %v", err)
	}
	before := set.Generation()
	pass(2 * time.Minute)
	if _, err := set.Find("a"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a key that was last confirmed too long ago: %v", err)
	}
	after := set.Generation()
	if after == before {
		t.Error("what was verified with keys that are too old still stands")
	}
	pass(2 * time.Minute)
	sets.refresh(t.Context())
	if set.Generation() != after {
		t.Error("no keys twice are two generations")
	}
	i.publish(ecKey(t, "a"))
	pass(11 * time.Second)
	mustFind(t, set, "a")
	if g := set.Generation(); g == before || g == after {
		t.Errorf("keys that are back have generation %d, as before", g)
	}
}

func TestAnIssuerThatWasNeverReachedIsNotAskedByEveryToken(t *testing.T) {
	i := newIssuer(t)
	i.say(down)
	sets, _ := newSets()
	set := sets.Get(i.URL)
	for range 20 {
		if _, err := set.Find("a"); !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
	}
	if n := i.asked.Load(); n != 1 {
		t.Errorf("the issuer was asked %d times", n)
	}
	if set.Generation() != 0 {
		t.Error("no keys have a generation")
	}
}

func TestAnswersThatAreNoKeySetAreRefused(t *testing.T) {
	elsewhere := newIssuer(t, ecKey(t, "a"))
	for name, answer := range map[string]func(http.ResponseWriter){
		"no JSON":       func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>")) },
		"no keys":       func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"keys":[]}`)) },
		"another thing": func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"issuer":"x"}`)) },
		"too large": func(w http.ResponseWriter) {
			_, _ = w.Write([]byte(`{"keys":["` + strings.Repeat("x", maxSet) + `"]}`))
		},
		"redirect": func(w http.ResponseWriter) {
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := newIssuer(t)
			i.say(answer)
			sets, _ := newSets()
			if _, err := sets.Get(i.URL).Find(""); !errors.Is(err, ErrUnavailable) {
				t.Error(err)
			}
		})
	}
	if elsewhere.asked.Load() != 0 {
		t.Error("a redirection to another host was followed")
	}
}

func TestAddressesThatNobodyMayAimAtAreNotCalled(t *testing.T) {
	sets, _ := newSets()
	if _, err := sets.Get("http://169.254.169.254/keys").Find(""); !errors.Is(err, dialguard.ErrNever) {
		t.Error(err)
	}
}

func TestOnlyKeysThatVerifySignaturesAreRead(t *testing.T) {
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	ed, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encryption := ecKey(t, "encryption")
	encryption.Use = "enc"
	set := map[string]any{"keys": []any{
		jose.JSONWebKey{Key: &short.PublicKey, KeyID: "short"},
		jose.JSONWebKey{Key: []byte("a secret that anybody can read..."), KeyID: "secret"},
		encryption,
		map[string]string{"kty": "OKP", "crv": "X448", "kid": "curve", "x": "AA"},
		map[string]string{"kty": "what", "kid": "kind"},
		"text",
		jose.JSONWebKey{Key: ed, KeyID: "good"},
	}}
	body, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := Parse(body)
	if err != nil || len(keys.all) != 1 || keys.all[0].ID != "good" {
		t.Errorf("%+v, %v", keys, err)
	}
	set["keys"] = set["keys"].([]any)[:6]
	if body, err = json.Marshal(set); err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(body); err == nil || !strings.Contains(err.Error(), "keys[0]") {
		t.Errorf("a set without a usable key: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}`))
	f.Add([]byte(`{"keys":[null,1,{}]}`))
	f.Fuzz(func(t *testing.T, set []byte) {
		if keys, err := Parse(set); (keys == nil) == (err == nil) {
			t.Errorf("%v, %v", keys, err)
		}
	})
}
