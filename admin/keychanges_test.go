package admin

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// changes asks for changes of keys as a gateway does.
func (b *bench) changes(gateway, position, poll string) *definition.KeyChanges {
	b.t.Helper()
	news := new(definition.KeyChanges)
	b.Call("GET", "/api/gateway/keys/changes?wait="+poll+"&position="+url.QueryEscape(position), gatewayToken, "", "X-Sluice-Gateway", gateway).Want(200).Into(news)
	return news
}

func TestGatewaysHearOfChangedKeys(t *testing.T) {
	b := start(t)
	var at string
	wait.Until(t, "a position", func() bool {
		r := b.Call("GET", "/api/gateway/keys/changes?wait=0s", gatewayToken, "")
		if r.Status != 200 {
			return false
		}
		news := new(definition.KeyChanges)
		r.Into(news)
		at = news.Position
		return news.Reset && at != ""
	})
	waiting := make(chan *definition.KeyChanges)
	go func() { waiting <- b.changes("g", at, "30s") }()
	b.commit("h1", &definition.Session{}, true)
	news := <-waiting
	if !slices.Equal(news.Changed, []string{"h1"}) || news.Reset || news.Position == at {
		t.Errorf("a new key: %+v", news)
	}
	b.commit("h1", &definition.Session{Alias: "changed"}, false)
	b.commit("h2", &definition.Session{}, true)
	b.commit("h1", nil, false)
	wait.Until(t, "all changes, in their order", func() bool {
		return slices.Equal(b.changes("g", news.Position, "1s").Changed, []string{"h1", "h2", "h1"})
	})
	if again := b.changes("g", at, "1s"); !slices.Equal(again.Changed, []string{"h1", "h1", "h2", "h1"}) {
		t.Errorf("from the first position: %+v", again)
	}
	last := b.changes("g", at, "1s").Position
	if none := b.changes("g", last, "0s"); len(none.Changed) != 0 || none.Position != last || none.Reset {
		t.Errorf("without changes: %+v", none)
	}
	for _, unknown := range []string{"", "1.of-another-database", "999999.x"} {
		if news := b.changes("g", unknown, "1s"); !news.Reset || news.Position != last || len(news.Changed) != 0 {
			t.Errorf("position %q: %+v", unknown, news)
		}
	}
	for _, wrong := range []string{"x", "1", "1.", ".x"} {
		b.Call("GET", "/api/gateway/keys/changes?position="+wrong, gatewayToken, "").Want(400).Says("position")
	}
	b.Exec("update key_changes set nonce = 'restored' where seq = (select max(seq) from key_changes)")
	b.commit("h3", &definition.Session{}, true)
	wait.Until(t, "the restored database to be noticed", func() bool { return b.changes("g", last, "0s").Reset })
	// A restarted admin, or another one, knows what was before it.
	_, other := b.serve(b.store)
	b.Client = b.Client.At(other)
	wait.Until(t, "the changes at another admin", func() bool {
		r := b.Call("GET", "/api/gateway/keys/changes?wait=0s&position="+url.QueryEscape(at), gatewayToken, "")
		return r.Status == 200 && strings.Contains(string(r.Body), `"h2"`) // 503 until it has read the database
	})
}

func TestADeletedKeySaysWhereItIsRefused(t *testing.T) {
	b := start(t)
	made := func() string {
		return b.Call("POST", "/api/keys", b.editor, `{"access_rights":{"a":{"api_id":"a","versions":["Default"]}}}`).Want(200).Text("key_hash")
	}
	b.createAPI(b.editor, "a", "/a")
	revoked := func() (reach struct {
		Meta struct {
			InForce  int `json:"in_force"`
			Gateways int
			Missing  []string
		}
	},
	) {
		b.Call("DELETE", "/api/keys/"+made()+"?hashed=true", b.editor, "").Want(200).Into(&reach)
		return reach
	}
	if got := revoked().Meta; got.InForce != 0 || got.Gateways != 0 || got.Missing == nil {
		t.Errorf("without gateways: %+v", got)
	}
	for _, name := range []string{"quick", "silent"} {
		if err := b.store.PutGateway(t.Context(), store.Gateway{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var follow sync.WaitGroup
	follow.Go(func() {
		for at := ""; ctx.Err() == nil; {
			at = b.changes("quick", at, "100ms").Position
		}
	})
	wait.Until(t, "the quick gateway to follow", func() bool { return revoked().Meta.InForce == 1 })
	if got := revoked().Meta; got.Gateways != 2 || !slices.Equal(got.Missing, []string{"silent"}) {
		t.Errorf("%+v", got)
	}
	cancel()
	follow.Wait()
	// What another admin heard is in the database.
	b.Exec("update gateways set keys_seq = 1000000 where name = 'silent'")
	if got := revoked().Meta; !slices.Equal(got.Missing, []string{"quick"}) {
		t.Errorf("%+v", got)
	}
}

// ledgered is a key store that knows how far it was written.
type ledgered struct {
	shared
	mu       *sync.Mutex
	position *string
	broken   *error
}

func newLedgered(keys *keyStore) ledgered {
	return ledgered{shared{keys}, new(sync.Mutex), new(string), new(error)}
}

// Mark raises the position, as that of the real store does.
func (l ledgered) Mark(_ context.Context, seq int64, position string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, _, _ := strings.Cut(*l.position, ".")
	if at, _ := strconv.ParseInt(before, 10, 64); at <= seq {
		*l.position = position
	}
	return *l.broken
}

func (l ledgered) Marked(context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *l.position, *l.broken
}

func (l ledgered) Sealed(context.Context) (bool, error) { return true, nil }

func (l ledgered) Reconcile(ctx context.Context, truth keystore.Truth) (did keystore.Difference, err error) {
	for e, err := range truth.Entries {
		if err != nil {
			return did, err
		}
		if err := l.keys.Put(ctx, e.Hash, e.Session); err != nil {
			return did, err
		}
		did.Written++
	}
	l.keys.mu.Lock()
	var all []string
	for hash := range l.keys.sessions {
		if hash != "mark" {
			all = append(all, hash)
		}
	}
	l.keys.mu.Unlock()
	exist, err := truth.Exist(ctx, all)
	if err != nil {
		return did, err
	}
	for _, hash := range all {
		if !slices.Contains(exist, hash) {
			did.Deleted++
			err = errors.Join(err, l.keys.Delete(ctx, hash))
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	*l.position = truth.Position
	return did, errors.Join(err, *l.broken)
}

func TestTheKeyStoreOfARestoredDatabaseIsReconciled(t *testing.T) {
	kept := newKeyStore()
	ledger := newLedgered(kept)
	b := start(t, func(d *Deps) { d.Keys, d.Shared = kept, ledger })
	b.commit("h1", &definition.Session{}, true)
	wait.Until(t, "the key and the mark are there", func() bool { return kept.len() == 2 })
	if err := kept.Put(t.Context(), "made after the backup", &definition.Session{}); err != nil {
		t.Fatal(err)
	}
	if err := ledger.Mark(t.Context(), 99, "99.lost"); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the key is gone", func() bool { return kept.len() == 2 })
	wait.Until(t, "the position is the database's", func() bool { at, _ := ledger.Marked(t.Context()); return at != "99.lost" })

	if err := kept.Put(t.Context(), "foreign", &definition.Session{}); err != nil {
		t.Fatal(err)
	}
	b.Call("POST", "/api/keys/sync", b.editor, "").Want(403)
	var did keystore.Difference
	b.Call("POST", "/api/keys/sync", b.admin, "").Want(200).Into(&did)
	if did.Deleted != 1 || did.Written != 1 {
		t.Errorf("%+v", did)
	}
	kept.breakWith(keystore.ErrUnavailable)
	b.Call("POST", "/api/keys/sync", b.admin, "").Want(503)
	kept.breakWith(nil)
}

func TestThereIsNothingToSyncInOneProcess(t *testing.T) {
	b := start(t)
	b.Call("POST", "/api/keys/sync", b.admin, "").Want(400).Says("no key store to compare")
}
