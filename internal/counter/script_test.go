package counter

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/testenv"
)

// onClock is the counting script with its time given as ARGV[2].
func onClock(t *testing.T) string {
	t.Helper()
	const own = "local t = call('TIME'); now = t[1] * 1e6 + t[2]"
	if strings.Count(takeSource, own) != 1 {
		t.Fatal("the script reads its clock in another way than this test replaces")
	}
	return strings.Replace(takeSource, own, "now = tonumber(ARGV[2])", 1)
}

// model is what script.lua must do, in Go.
type model struct {
	rates  map[string]window
	quotas map[string]int64
}

func (m *model) item(now int64, calls, portion int, limits []Limit) string {
	grant, refused := int64(calls), -1
	free := make([]int64, len(limits))
	aged := make([]window, len(limits))
	for i, l := range limits {
		used := m.quotas[l.Key]
		if l.Kind == Rate {
			aged[i] = m.look(now, l)
			used = aged[i].total
		}
		if free[i] = l.Max - used; max(free[i], 0) < grant {
			grant, refused = max(free[i], 0)/int64(portion)*int64(portion), i
		}
	}
	var said strings.Builder
	said.WriteString(fmt.Sprint(grant, refused))
	for i, l := range limits {
		reset := int64(-1)
		if l.Kind == Rate {
			aged[i].add(now, grant, groupSize(l.Max))
			if reset = 0; aged[i].total > 0 {
				reset = (aged[i].frees(micros(l.Period)) - now) / 1000
			}
			if grant > 0 {
				m.rates[l.Key] = aged[i]
			}
		} else if m.quotas[l.Key] += grant; m.quotas[l.Key] == 0 {
			reset = -2
		}
		said.WriteString(fmt.Sprint(" ", free[i], reset))
	}
	return said.String()
}

// look ages a copy of a rate. The script does not write what only grew older,
// but does write times that it moved.
func (m *model) look(now int64, l Limit) window {
	stored := m.rates[l.Key]
	stepped := len(stored.groups) > 0 && stored.groups[len(stored.groups)-1].last > now
	w := window{total: stored.total, groups: slices.Clone(stored.groups)}
	w.age(now, micros(l.Period))
	if stepped {
		m.rates[l.Key] = window{total: w.total, groups: slices.Clone(w.groups)}
	}
	return w
}

func (r reply) String() string {
	refused := r.refused()
	if refused == refusedNone {
		refused = -1
	}
	var said strings.Builder
	said.WriteString(fmt.Sprint(r.granted(), refused))
	for i := range (len(r) - replyHead) / replyLimit {
		free, reset := r.limit(i)
		said.WriteString(fmt.Sprint(" ", free, reset))
	}
	return said.String()
}

// 24 000 items of random limits, batches, portions and changed maxima on a given clock
// that sometimes steps back: the script and the code that counts in memory say
// the same at each of them.
func TestScriptCountsAsTheCodeInMemoryDoes(t *testing.T) {
	store := testenv.Valkey(t)
	v, err := OpenValkey(t.Context(), ValkeyOptions{Addresses: []string{store.Addr}, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	client, source := *v.client.Load(), newScript(onClock(t))
	random := rand.New(rand.NewPCG(7, 11))
	m := model{rates: map[string]window{}, quotas: map[string]int64{}}
	now, back := int64(1_700_000_000_000_000), 0
	for range 3000 {
		switch random.IntN(90) {
		case 0:
			now, back = now-random.Int64N(3_000_000_000), back+1
		case 1:
			now += random.Int64N(3_000_000_000)
		default:
			now += random.Int64N(20_000_000)
		}
		var keys []string
		var packed []byte
		var said []string
		for range 8 {
			limits := randomLimits(random)
			portion := 1 + random.IntN(5)*random.IntN(4)
			calls := portion * random.IntN(1+40/portion)
			packed = appendItem(packed, calls, portion, limits)
			for _, l := range limits {
				keys = append(keys, l.Key)
			}
			said = append(said, m.item(now, calls, portion, limits))
		}
		eval := client.B().Eval().Script(source.source).Numkeys(int64(len(keys))).Key(keys...).Arg(string(packed), strconv.FormatInt(now, 10)).Build()
		all, err := client.Do(t.Context(), eval).ToString()
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for i, want := range said {
			limits := int(packed[at+itemCalls])
			size := replySize(limits)
			if got := reply(all[:size]).String(); got != want {
				t.Fatalf("item %d at %d: script says %q, memory %q", i, now, got, want)
			}
			all, at = all[size:], at+itemHead+limits*itemLimit
		}
	}
	if back < 10 {
		t.Errorf("the clock stepped back %d times, want more", back)
	}
}

// randomLimits are one to three limits of different keys: periods are 100 s and
// more, so that the store's own expiry plays no part.
func randomLimits(random *rand.Rand) []Limit {
	limits := make([]Limit, 0, 3)
	for _, n := range random.Perm(5)[:1+random.IntN(3)] {
		l := Limit{Key: fmt.Sprint("rate", n), Kind: Rate, Max: random.Int64N(200), Period: time.Duration(100+100*n) * time.Second}
		if n == 4 {
			l = Limit{Key: "quota", Max: random.Int64N(20_000)}
		}
		limits = append(limits, l)
	}
	return limits
}

// A value that is no counter refuses its own item; the other limits of the item
// and the other items of the flight are not harmed.
func TestScriptLeavesForeignValuesAlone(t *testing.T) {
	store := testenv.Valkey(t)
	v, err := OpenValkey(t.Context(), ValkeyOptions{Addresses: []string{store.Addr}, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	store.Do("RPUSH", "list", "x")
	for _, text := range []string{"", "word", "1.5", "0x10", " 7", "1e3", "12345678901234567"} {
		store.Do("SET", "text"+text, text)
	}
	for key, kind := range map[string]Kind{
		"list": Quota, "textword": Quota, "text1.5": Quota, "text0x10": Quota, "text 7": Quota, "text1e3": Quota, "text": Rate,
		"text12345678901234567": Rate,
	} {
		limits := []Limit{{Key: "good", Max: 5}, {Key: key, Kind: kind, Max: 5, Period: time.Minute}}
		packed := append(appendItem(nil, 1, 1, limits), appendItem(nil, 1, 1, limits[:1])...)
		all, err := v.taking.run(t.Context(), *v.client.Load(), []string{"good", key, "good"}, string(packed))
		if err != nil {
			t.Fatalf("%q: %v", key, err)
		}
		if first := reply(all[:replySize(2)]); first.refused() != refusedForeign || first.granted() != 0 {
			t.Errorf("%q: %v, want refused as foreign", key, first)
		}
		if second := reply(all[replySize(2):]); second.granted() != 1 {
			t.Errorf("after %q: %v, want one call granted", key, second)
		}
		store.Do("DEL", "good")
	}
	if got := store.Do("TYPE", "list"); got != "list" {
		t.Errorf("the list became a %s", got)
	}
}

// The slot of a key, against a store's own answer.
func TestSlotsAreTheStores(t *testing.T) {
	store := testenv.Valkey(t, "--cluster-enabled", "yes")
	for _, key := range []string{"a", "", "{", "{}", "{}x", "a{b}c", "a{b", "{a}{b}", "a{}{b}", "quota-api-{0123abcd}", "ключ", "{{x}}"} {
		if got, want := strconv.Itoa(slot(key)), store.Do("CLUSTER", "KEYSLOT", key); got != want {
			t.Errorf("slot of %q: %s, want %s", key, got, want)
		}
	}
}
