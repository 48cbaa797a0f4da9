package basic

import (
	"context"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/sluicegate/sluice/internal/testenv/race"
)

var home = netip.MustParseAddr("192.0.2.1")

// cheap is a stored password that is quick to check.
func cheap(t testing.TB, plain string) string {
	t.Helper()
	stored, err := bcrypt.GenerateFromPassword([]byte(plain), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return string(stored)
}

func usual() Options {
	return Options{Size: 100, TTL: time.Minute, PerUser: 5, PerAddress: 20, AtOnce: 2}
}

func try(user, plain, stored string) Attempt {
	return Attempt{User: []byte(user), Password: []byte(plain), Stored: stored, From: home}
}

// check does what a request does.
func check(v *Verifier, a Attempt) Outcome {
	if v.Knows(a.User, a.Password, a.Stored, time.Now()) {
		return Right
	}
	outcome, _ := v.Check(a)
	return outcome
}

func TestAHotUserCostsNoHash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, stored := New(usual()), cheap(t, "secret")
		for range 10 {
			if got := check(v, try("bob", "secret", stored)); got != Right {
				t.Fatal(got)
			}
		}
		if got := v.Stats(); got.Hashes != 1 || got.Entries != 1 {
			t.Errorf("%+v", got)
		}
		for name, a := range map[string]Attempt{
			"another password": try("bob", "secreT", stored), "another user": try("bo", "bsecret", stored), "no such user": try("bob", "secret", ""),
		} {
			if got := check(v, a); got != Wrong {
				t.Errorf("%s: %d", name, got)
			}
		}
		if got := check(v, try("bob", "secret", cheap(t, "changed"))); got != Wrong {
			t.Errorf("the old password after a change: %d", got)
		}
		before := v.Stats().Hashes
		time.Sleep(time.Minute)
		if got := check(v, try("bob", "secret", stored)); got != Right || v.Stats().Hashes != before+1 {
			t.Errorf("after its time: %d, %d hashes", got, v.Stats().Hashes-before)
		}
	})
}

func TestGuessesAreCountedByUserAndByAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, stored := New(usual()), cheap(t, "secret")
		for i := range 5 {
			if got := check(v, try("bob", strconv.Itoa(i), stored)); got != Wrong {
				t.Fatalf("guess %d: %d", i, got)
			}
		}
		before := v.Stats().Hashes
		outcome, wait := v.Check(try("bob", "secret", stored))
		if outcome != Throttled || wait <= 0 || wait > time.Minute/5 || v.Stats().Hashes != before {
			t.Errorf("one too many: %d, next in %v", outcome, wait)
		}
		if got := check(v, try("ann", "secret", stored)); got != Right {
			t.Errorf("another user: %d", got)
		}
		time.Sleep(wait)
		if got := check(v, try("bob", "secret", stored)); got != Right {
			t.Errorf("after the time that was told: %d", got)
		}
		for i := range 20 {
			check(v, try("user"+strconv.Itoa(i), "x", ""))
		}
		if got := check(v, try("somebody", "secret", stored)); got != Throttled {
			t.Errorf("from an address that guessed: %d", got)
		}
		elsewhere := try("somebody", "secret", stored)
		elsewhere.From = netip.MustParseAddr("2001:db8::1")
		if got := check(v, elsewhere); got != Right {
			t.Errorf("from elsewhere: %d", got)
		}
	})
}

func TestWhoWasRightIsNotHeldBackByWhoGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, stored := New(usual()), cheap(t, "secret")
		check(v, try("bob", "secret", stored))
		for i := range 100 {
			check(v, try("bob", strconv.Itoa(i), stored))
		}
		time.Sleep(61 * time.Second)
		for i := range 100 {
			check(v, try("bob", strconv.Itoa(i), stored))
		}
		if got := check(v, try("bob", "new", stored)); got != Throttled {
			t.Fatalf("a guess: %d", got)
		}
		if got := check(v, try("bob", "secret", stored)); got != Right {
			t.Errorf("who was right before: %d", got)
		}
	})
}

func TestTimeAndAnswerDoNotTellWhichUsersThereAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, stored := New(usual()), cheap(t, "secret")
		var took [2]time.Duration
		var came [2][]Outcome
		for i, hash := range []string{stored, ""} {
			began := time.Now()
			for n := range 8 {
				came[i] = append(came[i], check(v, try("user"+strconv.Itoa(i), strconv.Itoa(n), hash)))
			}
			took[i] = time.Since(began)
		}
		if took[0] != took[1] || took[0] != 5*answerAfter {
			t.Errorf("a user took %v, nobody %v", took[0], took[1])
		}
		for n := range came[0] {
			if came[0][n] != came[1][n] {
				t.Errorf("guess %d: %d for a user, %d for nobody", n, came[0][n], came[1][n])
			}
		}
	})
}

func TestRequestsThatComeTogetherShareAHash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := usual()
		o.PerUser, o.PerAddress = 1, 1 // together they are one guess at most
		v, stored := New(o), cheap(t, "secret")
		key := callKey{v.macs.sum([]byte("bob"), []byte("secret")), stored}
		f := &call{done: make(chan struct{})}
		v.calls[key] = f
		var group sync.WaitGroup
		for range 100 {
			a := try("bob", "secret", stored)
			group.Go(func() {
				if outcome, _ := v.Check(a); outcome != Right {
					t.Errorf("outcome %d", outcome)
				}
			})
		}
		synctest.Wait()
		if v.Stats().Hashes != 0 {
			t.Error("hashed beside the one that is under way")
		}
		f.right = true
		close(f.done)
		group.Wait()
	})
}

func TestTooManyAtOnceAreToldSo(t *testing.T) {
	o := usual()
	o.AtOnce, o.PerUser, o.PerAddress = 1, 0, 0
	synctest.Test(t, func(t *testing.T) {
		v := New(o)
		slow, err := bcrypt.GenerateFromPassword([]byte("secret"), 8)
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for i := range 2 * waiting {
			group.Go(func() { v.Check(try("user"+strconv.Itoa(i), strconv.Itoa(i), string(slow))) })
		}
		group.Wait()
		got := v.Stats()
		if got.Busy == 0 || got.Busy+got.Wrong != 2*waiting {
			t.Errorf("%+v", got)
		}
		if outcome, _ := v.Check(try("bob", "secret", string(slow))); outcome != Right {
			t.Errorf("afterwards: %d", outcome)
		}
	})
}

func TestALookLeavesNoTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, stored := New(usual()), cheap(t, "secret")
		for range looksPerUser - 1 {
			if got, _ := v.Look(try("bob", "wrong", stored)); got != Wrong {
				t.Fatalf("wrong: %d", got)
			}
		}
		for range 3 {
			if got, _ := v.Look(try("bob", "secret", stored)); got != Right {
				t.Errorf("right: %d", got)
			}
		}
		if got, _ := v.Look(try("bob", "secret", "")); got != Wrong {
			t.Errorf("nobody: %d", got)
		}
		if got := v.Stats(); got != (Stats{}) {
			t.Errorf("%+v", got)
		}
		for i := range 9 {
			check(v, try("bob", strconv.Itoa(i), stored))
		}
		if got, wait := v.Look(try("bob", "secret", stored)); got != Throttled || wait <= 0 {
			t.Errorf("after guesses: %d, %v", got, wait)
		}
	})
}

func TestLooksFindNoPasswordOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, stored := New(usual()), cheap(t, "secret")
		wrong, throttled := 0, 0
		for i := range 100 {
			switch outcome, wait := v.Look(try("bob", strconv.Itoa(i), stored)); {
			case outcome == Wrong:
				wrong++
			case outcome == Throttled && wait > 0 && wait <= time.Minute:
				throttled++
			}
		}
		if wrong != looksPerUser || throttled != 100-looksPerUser {
			t.Errorf("%d wrong, %d throttled", wrong, throttled)
		}
		if got, _ := v.Look(try("ann", "wrong", stored)); got != Wrong {
			t.Errorf("another user: %d", got)
		}
		if got := check(v, try("bob", "secret", stored)); got != Right {
			t.Errorf("the user: %d", got)
		}
		free := New(Options{Size: 100, TTL: time.Minute, AtOnce: 2})
		for i := range 100 {
			if got, _ := free.Look(try("bob", strconv.Itoa(i), stored)); got != Wrong {
				t.Fatalf("nobody is held back: %d", got)
			}
		}
	})
}

func TestWhatIsRememberedHasABoundAndAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := New(usual())
		for i := range 10_000 {
			s := v.macs.sum([]byte(strconv.Itoa(i)), nil)
			v.right.Put(s, proof{at: time.Since(v.base)})
		}
		if n := v.Stats().Entries; n > 100 || n < 50 {
			t.Errorf("%d entries", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { v.Run(ctx); close(done) }()
		time.Sleep(2 * remembered)
		synctest.Wait()
		if n := v.Stats().Entries; n != 0 {
			t.Errorf("%d entries after their time", n)
		}
		cancel()
		<-done
	})
}

func TestAddressesOfOneCustomerAreOne(t *testing.T) {
	g := newGuesses(1)
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"2001:db8::1", "2001:db8::2:3", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"fe80::1%eth0", "fe80::1", true},
	} {
		if got := g.ofAddress(netip.MustParseAddr(c.a)) == g.ofAddress(netip.MustParseAddr(c.b)); got != c.same {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
	g.ofAddress(netip.Addr{})
}

func TestAWarmUserDoesNotAllocate(t *testing.T) {
	v, stored := New(usual()), cheap(t, "secret")
	user, plain, now := []byte("org1bob"), []byte("secret"), time.Now()
	v.Check(Attempt{User: user, Password: plain, Stored: stored, From: home})
	if n := testing.AllocsPerRun(1000, func() {
		if !v.Knows(user, plain, stored, now) {
			t.Fatal("not known")
		}
	}); n != 0 && !race.Enabled { // with the race detector on, pools drop what they hold at random
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkKnows(b *testing.B) {
	v, stored := New(usual()), cheap(b, "secret")
	user, plain, now := []byte("org1bob"), []byte("secret"), time.Now()
	v.Check(Attempt{User: user, Password: plain, Stored: stored, From: home})
	b.ReportAllocs()
	for b.Loop() {
		v.Knows(user, plain, stored, now)
	}
}
