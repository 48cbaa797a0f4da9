package keystore_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// entries iterates over sessions as an admin would over its database.
func entries(sessions map[string]*definition.Session) iter.Seq2[keystore.Entry, error] {
	return func(yield func(keystore.Entry, error) bool) {
		for _, hash := range slices.Sorted(maps.Keys(sessions)) {
			if !yield(keystore.Entry{Hash: hash, Session: sessions[hash]}, nil) {
				return
			}
		}
	}
}

func fill(t *testing.T, v *keystore.Valkey, sessions map[string]*definition.Session) {
	t.Helper()
	n, err := v.Fill(t.Context(), entries(sessions))
	if err != nil || n != len(sessions) {
		t.Fatalf("filled %d of %d: %v", n, len(sessions), err)
	}
}

func filled(t *testing.T, v *keystore.Valkey) bool {
	t.Helper()
	is, err := v.Filled(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return is
}

// isUnavailable fails t unless err says that nothing is known.
func isUnavailable(t *testing.T, doing string, err error) {
	t.Helper()
	if !errors.Is(err, keystore.ErrUnavailable) || errors.Is(err, keystore.ErrNotFound) {
		t.Errorf("%s: %v, want ErrUnavailable", doing, err)
	}
}

func many(n int) map[string]*definition.Session {
	sessions := make(map[string]*definition.Session, n)
	for i := range n {
		sessions[fmt.Sprintf("%064d", i)] = alias(fmt.Sprint(i))
	}
	return sessions
}

func TestFilledStoreHoldsEveryKeyUnderItsName(t *testing.T) {
	server := testenv.Valkey(t)
	v := openValkey(t, keystore.ValkeyOptions{Addresses: []string{server.Addr}, Fed: true})
	if filled(t, v) {
		t.Error("an empty store is filled")
	}
	started := time.Now()
	fill(t, v, many(2500))
	t.Logf("2500 keys in %s", time.Since(started))
	if !filled(t, v) {
		t.Error("not filled after Fill")
	}
	name := "sluice:key:" + fmt.Sprintf("%064d", 2499)
	if got := server.Do("GET", name); !strings.Contains(got, `"alias":"2499"`) {
		t.Errorf("%s holds %s", name, got)
	}
	lacks(t, v, "nobody")
}

func TestMissingKeyOfAStoreThatLostItsDataIsNotProof(t *testing.T) {
	server := testenv.Valkey(t)
	fed := openValkey(t, keystore.ValkeyOptions{Addresses: []string{server.Addr}, Fed: true})
	alone := openValkey(t, keystore.ValkeyOptions{Addresses: []string{server.Addr}})
	fill(t, fed, many(3))
	server.Do("FLUSHALL")
	_, err := fed.Get(t.Context(), "nobody")
	if !errors.Is(err, keystore.ErrRefilling) {
		t.Errorf("got %v, want ErrRefilling", err)
	}
	isUnavailable(t, "get", err)
	lacks(t, alone, "nobody")

	put(t, fed, "written meanwhile", alias("x"))
	get(t, fed, "written meanwhile")
	fill(t, fed, many(3))
	lacks(t, fed, "nobody")
}

func TestFillThatBreaksOffLeavesTheStoreIncomplete(t *testing.T) {
	server := testenv.Valkey(t)
	v := openValkey(t, keystore.ValkeyOptions{Addresses: []string{server.Addr}, Fed: true})
	fill(t, v, many(1))
	broken := errors.New("database went away")
	_, err := v.Fill(t.Context(), func(yield func(keystore.Entry, error) bool) {
		_ = yield(keystore.Entry{Hash: "a", Session: alias("a")}, nil) && yield(keystore.Entry{}, broken)
	})
	if !errors.Is(err, broken) || filled(t, v) {
		t.Errorf("fill returned %v; filled %v", err, filled(t, v))
	}
}

func TestClusterNodeThatLostItsDataIsNotProof(t *testing.T) {
	cluster := testenv.ValkeyCluster(t)
	v := openValkey(t, keystore.ValkeyOptions{Addresses: cluster.Addresses(), Cluster: true, Fed: true})
	all := many(300)
	fill(t, v, all)
	cluster.Nodes[1].Do("FLUSHALL")
	if filled(t, v) {
		t.Error("filled, although a node lost its data")
	}
	lost := 0
	for hash := range all {
		_, err := v.Get(t.Context(), hash)
		switch {
		case err == nil:
		case errors.Is(err, keystore.ErrRefilling):
			lost++
		default:
			t.Fatalf("get %s: %v", hash, err)
		}
	}
	if lost < 50 || lost > 150 {
		t.Errorf("%d of 300 keys lost with one of three nodes", lost)
	}
}

func TestStoreThatIsAwayProvesNothing(t *testing.T) {
	server := testenv.Valkey(t, "--appendonly", "yes")
	v := openValkey(t, keystore.ValkeyOptions{Addresses: []string{server.Addr}, Timeout: 300 * time.Millisecond})
	wait.Until(t, "it is reached", func() bool { return v.Put(t.Context(), "h", alias("one")) == nil })
	server.Kill()
	_, err := v.Get(t.Context(), "h")
	isUnavailable(t, "get", err)
	isUnavailable(t, "put", v.Put(t.Context(), "h", alias("two")))
	isUnavailable(t, "delete", v.Delete(t.Context(), "h"))
	_, _, err = v.List(t.Context(), "", 10)
	isUnavailable(t, "list", err)
	_, err = v.Filled(t.Context())
	isUnavailable(t, "filled", err)
	server.Restart()
	wait.Until(t, "the session is there again", func() bool {
		got, err := v.Get(t.Context(), "h")
		return err == nil && got.Alias == "one"
	})
}

func TestStoreThatStandsStillIsGivenUpInTime(t *testing.T) {
	server := testenv.Valkey(t)
	v := openValkey(t, keystore.ValkeyOptions{Addresses: []string{server.Addr}, Timeout: 100 * time.Millisecond})
	wait.Until(t, "it is reached", func() bool { return v.Put(t.Context(), "h", alias("one")) == nil })
	server.Stop()
	defer server.Cont()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := v.Get(ctx, "h")
	isUnavailable(t, "get", err)
	if ctx.Err() != nil {
		t.Error("it was its caller who gave up, not the timeout of 100 ms")
	}
}

func TestStoreThatIsAwayAtTheStartIsReachedLater(t *testing.T) {
	server := testenv.Valkey(t)
	server.Kill()
	v := openValkey(t, keystore.ValkeyOptions{Addresses: []string{server.Addr}})
	h := watch(t.Context(), v)
	_, err := v.Get(t.Context(), "h")
	isUnavailable(t, "get", err)
	isUnavailable(t, "put", v.Put(t.Context(), "h", alias("one")))
	_, err = v.Fill(t.Context(), entries(nil))
	isUnavailable(t, "fill", err)
	server.Restart()
	wait.Until(t, "a put succeeds", func() bool { return v.Put(t.Context(), "h", alias("one")) == nil })
	h.await(t, "")
	put(t, v, "i", alias("two"))
	h.await(t, "i")
}

func TestValueThatIsNoSessionProvesNothing(t *testing.T) {
	server := testenv.Valkey(t)
	v := openValkey(t, keystore.ValkeyOptions{Addresses: []string{server.Addr}})
	server.Do("SET", "sluice:key:h", `{"rate": "x"}`)
	_, err := v.Get(t.Context(), "h")
	isUnavailable(t, "get", err)
	if err != nil && !strings.Contains(err.Error(), "rate: must be a number") {
		t.Errorf("got %v", err)
	}
}

func TestStoreThatRefusesUsIsAnError(t *testing.T) {
	server := testenv.Valkey(t, "--requirepass", "right")
	for name, password := range map[string]string{"no password": "", "wrong password": "wrong"} {
		v, err := keystore.OpenValkey(keystore.ValkeyOptions{Addresses: []string{server.Addr}, Password: password, Timeout: patience})
		if err == nil {
			v.Close()
			t.Errorf("%s: accepted", name)
		} else if strings.Contains(err.Error(), "wrong") && password == "wrong" && strings.Contains(err.Error(), `"wrong"`) {
			t.Errorf("the error tells the password: %v", err)
		}
	}
	v := openValkey(t, keystore.ValkeyOptions{Addresses: []string{server.Addr}, Password: "right"})
	put(t, v, "h", alias("x"))
}

func TestOptionsAreChecked(t *testing.T) {
	for want, o := range map[string]keystore.ValkeyOptions{
		"addresses: none given":                 {},
		"addresses: several need cluster":       {Addresses: []string{"a:1", "b:1"}},
		"cluster and sentinel_master: want one": {Addresses: []string{"a:1"}, Cluster: true, SentinelMaster: "m"},
		`address "a": want host:port`:           {Addresses: []string{"a"}},
		"timeout -1ns: want more than 0":        {Addresses: []string{"a:1"}, Timeout: -1},
		`address "unix:/x": want host:port`:     {Addresses: []string{"unix:/x"}, Cluster: true},
	} {
		if _, err := keystore.OpenValkey(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestWatchSaysWhenItMayHaveMissedSomething(t *testing.T) {
	server := testenv.Valkey(t)
	v := openValkey(t, keystore.ValkeyOptions{Addresses: []string{server.Addr}})
	other := openValkey(t, keystore.ValkeyOptions{Addresses: []string{server.Addr}})
	h := watch(t.Context(), v)
	h.await(t, "")

	put(t, other, "a", alias("x"))
	h.await(t, "a")

	server.Do("FLUSHALL")
	h.await(t, "")

	server.Do("CLIENT", "KILL", "TYPE", "normal")
	h.await(t, "")
	wait.Until(t, "a write of another is heard after a lost connection", func() bool {
		return other.Put(t.Context(), "b", alias("x")) == nil && h.has("b")
	})

	server.Kill()
	h.await(t, "")
	server.Restart()
	h.await(t, "")
	wait.Until(t, "a write is heard after a restart", func() bool {
		return other.Put(t.Context(), "c", alias("x")) == nil && h.has("c")
	})
	if h.has("sluice:keys:epoch") {
		t.Error("heard of what is no key")
	}
}

func (h *heard) has(hash string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.hashes, hash)
}

func TestWatchHearsSoon(t *testing.T) {
	server := testenv.Valkey(t)
	v := openValkey(t, keystore.ValkeyOptions{Addresses: []string{server.Addr}})
	h := watch(t.Context(), v)
	h.await(t, "")
	var slowest time.Duration
	for i := range 50 {
		hash := fmt.Sprint(i)
		put(t, v, hash, alias("x"))
		started := time.Now()
		h.await(t, hash)
		slowest = max(slowest, time.Since(started))
	}
	t.Logf("heard at most %s after the write was acknowledged", slowest)
}

func TestWatchFollowsAPromotedReplica(t *testing.T) {
	group := testenv.ValkeySentinel(t)
	o := keystore.ValkeyOptions{Addresses: []string{group.Sentinel.Addr}, SentinelMaster: group.Master}
	v := openValkey(t, o)
	h := watch(t.Context(), v)
	h.await(t, "")
	put(t, v, "a", alias("x"))
	h.await(t, "a")
	group.Primary.Kill()
	wait.Until(t, "a write to the promoted replica is heard", func() bool {
		return v.Put(t.Context(), "b", alias("x")) == nil && h.has("b")
	})
}
