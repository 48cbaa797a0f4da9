package counter

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

// The script's quick way for common items does what its other way does: the same
// answers, the same bytes in the store and the same expiries, of 30 000 items of
// whatever may be there, at edges more often than chance has it.
func TestScriptCountsTheSameTheQuickWay(t *testing.T) {
	store := testenv.Valkey(t)
	v, err := OpenValkey(t.Context(), ValkeyOptions{Addresses: []string{store.Addr}, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	quickly := onClock(t)
	sources := map[string]string{"a": quickly, "b": replaced(t, quickly, "if limits.common and", "if false and")}
	eval := func(source, name string, keys []string, args ...string) string {
		named := make([]string, len(keys))
		for i, key := range keys {
			named[i] = name + key
		}
		c := *v.client.Load()
		said, err := c.Do(t.Context(), c.B().Eval().Script(source).Numkeys(int64(len(named))).Key(named...).Arg(args...).Build()).ToString()
		if err != nil {
			t.Fatal(err)
		}
		return said
	}
	random := rand.New(rand.NewPCG(5, 3))
	now, items := time.Now().AddDate(10, 0, 0).UnixMicro(), 0
	const each = 10 // items at once
	rounds := 1000
	if race.Enabled {
		rounds = 300 // the work is the store's
	}
	for range rounds {
		now += random.Int64N(10_000_000)
		if random.IntN(60) == 0 {
			now -= random.Int64N(200_000_000)
		}
		for range random.IntN(6) {
			put(store, now, random)
		}
		var p packed
		p.Reset()
		for _, n := range random.Perm(20)[:each] {
			limits := quickLimits(n, random)
			calls := random.IntN(3) * (1 + random.IntN(20)*random.IntN(2))
			p.item(calls, 1+random.IntN(1+calls), limits, random.IntN(3) == 0)
			items++
		}
		packed, at := p.Pack(), strconv.FormatInt(now, 10)
		got, want := eval(sources["a"], "a", p.Keys, packed, at), eval(sources["b"], "b", p.Keys, packed, at)
		for i := range each {
			if got, want := p.next(t, i, &got), p.next(t, i, &want); got != want {
				t.Fatalf("item %d at %d: the quick way says %q, the other %q", i, now, got, want)
			}
		}
		if got != "" || want != "" {
			t.Fatalf("at %d: the quick way also says %q, the other %q", now, got, want)
		}
		if got, want = eval(contents, "a", p.Keys), eval(contents, "b", p.Keys); got != want {
			t.Fatalf("at %d: the quick way leaves %q, the other %q", now, got, want)
		}
	}
	if quick := int(millis(t, store.Do("GET", "quick"))); quick < items/10 || quick > items/2 {
		t.Errorf("%d of %d items were counted the quick way, want some of both", quick, items)
	}
}

// contents is all that a store has of some keys.
const contents = `local all = {}
for _, key in ipairs(KEYS) do
  all[#all + 1] = redis.call('GET', key) or 'none'
  all[#all + 1] = redis.call('PEXPIRETIME', key)
end
return table.concat(all, ' ')`

// quickLimits are a rate and a quota, sometimes only one of them, or of another
// max, period or order than the time before. The quota's period does not end,
// since the store would date that by its own clock.
func quickLimits(n int, random *rand.Rand) []Limit {
	period := time.Duration(50+n*n) * time.Second
	limits := []Limit{
		{Key: fmt.Sprint("rate", n), Kind: Rate, Max: []int64{100, 10_000, 100_000, 1e9}[n%4], Period: period},
		{Key: fmt.Sprint("quota", n), Max: []int64{500, 1e6, 1 << 50}[n%3]},
	}
	switch random.IntN(15) {
	case 0:
		limits[0].Max = random.Int64N(100)
	case 1:
		limits[1].Max = random.Int64N(500)
	case 2:
		limits[0].Period *= 10
	case 3:
		limits[0], limits[1] = limits[1], limits[0]
	case 4, 5, 6:
		limits = limits[:1]
	case 7:
		limits = limits[1:]
	}
	return limits
}

// put leaves something behind for the next item to find, the same for both ways.
func put(store *testenv.Store, now int64, random *rand.Rand) {
	n := random.IntN(20)
	key := []string{"rate", "quota"}[random.IntN(2)] + strconv.Itoa(n)
	period := int64(50+n*n) * 1e6
	calls := 1 + random.Int64N(40)
	calling := group{last: now - random.Int64N(2)*period + random.Int64N(3) - 1, calls: calls}
	till := now + period + random.Int64N(3) - 1
	mark := group{last: -till}
	values := []string{
		oldRate(mark, calling), oldRate(mark, calling), oldRate(mark, calling), // what the quick way is for, all but
		"\x0f\x27\x00\x00" + oldRate(mark, calling)[4:], oldRate(group{last: -till, calls: 1}, calling),
		oldRate(mark, calling, calling), oldRate(mark, group{last: now}), oldRate(mark), oldRate(calling, calling), oldRate(calling), oldRate(),
		"text of twenty-eight bytes..", "490",
	}
	if key[0] == 'q' {
		values = []string{
			"0", "-3", "-0", "01", " 7", "7 ", "1e2", "1.0", "0x10", "12345678901234567", "123456789012345678", "-1234567890123456", "-12345678901234567",
			"text", "", "490", "499", "500", "999999", "1000000", oldRate(mark, calling),
		}
	}
	value := values[random.IntN(len(values))]
	gone := random.IntN(2) > 0 // what is foreign would stay for ever
	for _, name := range []string{"a", "b"} {
		if store.Do("DEL", name+key); !gone {
			store.Do("SET", name+key, value, "PXAT", strconv.FormatInt((now+period)/1000+5_000_000, 10))
		}
	}
}
