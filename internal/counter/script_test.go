package counter

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/counter/script"
	"github.com/sluicegate/sluice/internal/testenv"
)

// onClock is the counting script with its time given as ARGV[2]. Items that it
// counts the quick way add one to the key "quick".
func onClock(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile("script/take.lua")
	if err != nil {
		t.Fatal(err)
	}
	timed := replaced(t, string(source), "local t = call('TIME'); now = t[1] * 1e6 + t[2]", "now = tonumber(ARGV[2])")
	return replaced(t, timed, "done = true", "done = true; call('INCR', 'quick')")
}

// replaced changes the one place where the script says so.
func replaced(t *testing.T, source, what, by string) string {
	t.Helper()
	if n := strings.Count(source, what); n != 1 {
		t.Fatalf("the script says %q %d times, and this test replaces it", what, n)
	}
	return strings.Replace(source, what, by, 1)
}

// packed makes an item of its own for each of these, which a batch might merge.
type packed struct{ script.Batch }

func (p *packed) item(calls, portion int, limits []Limit, ask bool) {
	forms := make([]script.Form, len(limits))
	for i := range limits {
		forms[i] = formOf(&limits[i])
	}
	at := p.Open(p.Shape(forms))
	p.Count(at, calls, portion)
	if ask {
		p.Ask(at)
	}
	for i, l := range limits {
		p.Key(l.Key, i == 0)
	}
}

// model is what take.lua must do, in Go.
type model struct {
	rates  map[string]window
	quotas map[string]int64
}

func (m *model) item(now int64, calls, portion int, limits []Limit, ask bool) string {
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
		reset := int64(script.Never)
		if l.Kind == Rate {
			aged[i].add(now, grant, groupSize(l.Max))
			if reset = 0; aged[i].total > 0 {
				reset = (aged[i].frees(micros(l.Period)) - now) / 1000
			}
			if grant > 0 {
				m.rates[l.Key] = aged[i]
			}
		} else {
			open := m.quotas[l.Key] > 0
			switch m.quotas[l.Key] += grant; {
			case m.quotas[l.Key] == 0:
				reset = script.Closed
			case open && !ask:
				reset = script.NotAsked
			}
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

// spell is a reply about so many limits in the words of the model.
func spell(r script.Reply, limits int) string {
	granted, refused := r.Outcome()
	if refused == script.None {
		refused = -1
	}
	var said strings.Builder
	said.WriteString(fmt.Sprint(granted, refused))
	for i := range limits {
		free, reset := r.Limit(i)
		said.WriteString(fmt.Sprint(" ", free, reset))
	}
	return said.String()
}

// next takes the reply to an item from the beginning of what the script said.
func (p *packed) next(t *testing.T, item int, all *string) string {
	t.Helper()
	r, rest, ok := p.Reply(item, []byte(*all))
	if !ok {
		t.Fatalf("of item %d the script says only %q", item, *all)
	}
	*all = string(rest)
	return spell(r, len(p.Forms(item)))
}

// 27 000 items of random limits, batches, portions and changed maxima on a given clock
// that sometimes steps back: the script and the code that counts in memory say
// the same at each of them.
func TestScriptCountsAsTheCodeInMemoryDoes(t *testing.T) {
	store := testenv.Valkey(t)
	v, err := OpenValkey(t.Context(), ValkeyOptions{Addresses: []string{store.Addr}, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	client, source := *v.client.Load(), onClock(t)
	random := rand.New(rand.NewPCG(7, 11))
	m := model{rates: map[string]window{}, quotas: map[string]int64{}}
	now, back := time.Now().AddDate(10, 0, 0).UnixMicro(), 0 // the store itself must not take anything for expired
	for range 6000 {
		switch random.IntN(90) {
		case 0:
			now, back = now-random.Int64N(3_000_000_000), back+1
		case 1:
			now += random.Int64N(3_000_000_000)
		default:
			now += random.Int64N(20_000_000)
		}
		var p packed
		p.Reset()
		var said []string
		for range 1 + 7*random.IntN(2) { // of one item the keys are different, of eight they repeat
			limits := randomLimits(random)
			if random.IntN(3) == 0 {
				limits = commonLimits(random)
			}
			portion := 1 + random.IntN(5)*random.IntN(4)
			calls := portion * random.IntN(1+40/portion)
			ask := random.IntN(3) == 0
			p.item(calls, portion, limits, ask)
			said = append(said, m.item(now, calls, portion, limits, ask))
		}
		eval := client.B().Eval().Script(source).Numkeys(int64(len(p.Keys))).Key(p.Keys...).Arg(p.Pack(), strconv.FormatInt(now, 10)).Build()
		all, err := client.Do(t.Context(), eval).ToString()
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range said {
			if got := p.next(t, i, &all); got != want {
				t.Fatalf("item %d at %d: script says %q, memory %q", i, now, got, want)
			}
		}
	}
	if back < 10 {
		t.Errorf("the clock stepped back %d times, want more", back)
	}
	if quick := millis(t, store.Do("GET", "quick")); quick < 300 || quick > 20_000 {
		t.Errorf("%d items were counted the quick way, want some of both", quick)
	}
}

// commonLimits are a rate and perhaps a quota with room for most calls, which the
// script has a quick way for.
func commonLimits(random *rand.Rand) []Limit {
	limits := []Limit{
		{Key: "often", Kind: Rate, Max: 50_000 + random.Int64N(50_000), Period: 100 * time.Second},
		{Key: "quota", Max: 100_000 + random.Int64N(10_000_000)},
	}
	return limits[:1+random.IntN(2)]
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
// and the other items of the batch are not harmed.
func TestScriptLeavesForeignValuesAlone(t *testing.T) {
	store := testenv.Valkey(t)
	v, err := OpenValkey(t.Context(), ValkeyOptions{Addresses: []string{store.Addr}, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	store.Do("RPUSH", "list", "x")
	for _, text := range []string{"", "word", "1.5", "0x10", " 7", "007", "1e2", "1e3", "-", "--1", "12345678901234567", "99999999999999999999"} {
		store.Do("SET", "text"+text, text)
	}
	torn := "\x01\x00\x00\x00" + strings.Repeat("\x00", 12) // a rate without a group
	store.Do("SET", "textorn", torn)
	for key, kind := range map[string]Kind{
		"list": Quota, "textword": Quota, "text1.5": Quota, "text0x10": Quota, "text 7": Quota, "text007": Quota, "text1e2": Quota,
		"text1e3": Quota, "text-": Quota, "text--1": Quota, "text99999999999999999999": Quota, "text": Rate,
		"text12345678901234567": Rate, "textorn": Rate, "\x00list": Rate,
	} {
		key = strings.TrimPrefix(key, "\x00") // a key twice in the table, as the other kind
		for _, calls := range []int{0, 1} {
			limits := []Limit{{Key: "good", Max: 5}, {Key: key, Kind: kind, Max: 5, Period: time.Minute}, {Key: "rate", Kind: Rate, Max: 5, Period: time.Minute}}
			var p packed
			p.Reset()
			p.item(calls, 1, limits, true)
			p.item(1, 1, limits[:1], true)
			all, err := v.taking.Run(t.Context(), *v.client.Load(), p.Keys, p.Pack())
			if err != nil {
				t.Fatalf("%q: %v", key, err)
			}
			if got, want := p.next(t, 0, &all), fmt.Sprint(0, script.Foreign); !strings.HasPrefix(got, want+" ") {
				t.Errorf("%q, %d calls: %s, want refused as foreign", key, calls, got)
			}
			if got := p.next(t, 1, &all); !strings.HasPrefix(got, "1 ") {
				t.Errorf("after %q: %s, want one call granted", key, got)
			}
			if got := store.Do("EXISTS", "rate"); got != "0" {
				t.Errorf("%q: the item was counted in part", key)
			}
			store.Do("DEL", "good")
		}
	}
	if got := store.Do("TYPE", "list"); got != "list" {
		t.Errorf("the list became a %s", got)
	}
}

// oldRate is a rate as versions before the one that notes its expiry wrote it.
func oldRate(groups ...group) string {
	total := int64(0)
	var tail []byte
	for _, g := range groups {
		total += g.calls
		tail = binary.LittleEndian.AppendUint64(tail, math.Float64bits(float64(g.last)))
		tail = binary.LittleEndian.AppendUint32(tail, uint32(g.calls))
	}
	return string(append(binary.LittleEndian.AppendUint32(nil, uint32(total)), tail...))
}

// Gateways of two versions may share a store while one replaces the other.
func TestScriptGoesOnFromRatesOfAnOlderVersion(t *testing.T) {
	store := testenv.Valkey(t)
	v, err := OpenValkey(t.Context(), ValkeyOptions{Addresses: []string{store.Addr}, Timeout: 10 * time.Second, Outage: Closed})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	now := time.Now().UnixMicro()
	l := Limit{Key: "rate", Kind: Rate, Max: 6, Period: time.Minute}
	store.Do("SET", l.Key, oldRate(group{last: now - 61e6, calls: 1}, group{last: now - 10e6, calls: 2}, group{last: now - 9e6, calls: 1}), "PX", "51000")
	counts := make([]Count, 1)
	for i, left := range []int64{2, 1, 0} {
		if refused, err := v.Take(t.Context(), []Limit{l}, 1, counts); err != nil || refused >= 0 || counts[0].Remaining != left {
			t.Errorf("call %d: refused %d, %v, %d left, want %d", i, refused, err, counts[0].Remaining, left)
		}
	}
	if freed := counts[0].ResetAt - now/1000; freed < 49_000 || freed > 51_000+patienceMillis {
		t.Errorf("a call is freed in %d ms, want about 50000", freed)
	}
	if refused, err := v.Take(t.Context(), []Limit{l}, 1, counts); err != nil || refused != 0 {
		t.Errorf("a seventh call: refused %d, %v", refused, err)
	}
	if ends := millis(t, store.Do("PEXPIRETIME", l.Key)); ends < now/1000+60_000 {
		t.Errorf("expires in %d ms, before the calls leave", ends-now/1000)
	}
}

// patienceMillis is how long a busy machine may hold up a test.
const patienceMillis = 10_000

func millis(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A rate's expiry is written rarely, and yet never before the last call leaves,
// nor much later.
func TestRateExpiresAfterItsLastCallWhateverItsPeriod(t *testing.T) {
	store := testenv.Valkey(t)
	v, err := OpenValkey(t.Context(), ValkeyOptions{Addresses: []string{store.Addr}, Timeout: 10 * time.Second, Outage: Closed})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	counts, changes, before := make([]Count, 1), 0, ""
	for i, period := range []time.Duration{
		time.Minute, time.Minute, time.Second, 90 * time.Second, 90 * time.Second, time.Hour, 24 * time.Hour, time.Minute, 24 * time.Hour, 48 * time.Hour,
	} {
		from := time.Now()
		if _, err := v.Take(t.Context(), []Limit{{Key: "rate", Kind: Rate, Max: 1000, Period: period}}, 1, counts); err != nil {
			t.Fatal(err)
		}
		ends := store.Do("PEXPIRETIME", "rate")
		if ends != before {
			changes, before = changes+1, ends
		}
		if at := time.UnixMilli(millis(t, ends)); at.Before(from.Add(period)) || at.After(time.Now().Add(49*time.Hour+time.Second)) {
			t.Errorf("call %d: expires %s after it, want at least %s", i, at.Sub(from), period)
		}
	}
	if changes != 4 { // the first, one hour, one day, two days
		t.Errorf("the expiry was written %d times, want 4", changes)
	}
}

// The slot of a key, against a store's own answer.
func TestSlotsAreTheStores(t *testing.T) {
	store := testenv.Valkey(t, "--cluster-enabled", "yes")
	for _, key := range []string{"a", "", "{", "{}", "{}x", "a{b}c", "a{b", "{a}{b}", "a{}{b}", "quota-api-{0123abcd}", "ключ", "{{x}}"} {
		if got, want := strconv.Itoa(hashSlot(key)), store.Do("CLUSTER", "KEYSLOT", key); got != want {
			t.Errorf("slot of %q: %s, want %s", key, got, want)
		}
	}
}
