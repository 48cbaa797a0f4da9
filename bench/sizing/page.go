package sizing

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// box is the gateway that the page reckons with.
var box = Plant{Cores: 8, Gbit: 25, Utilisation: 0.7}

// million are loads of a million requests a second, each beside what differs.
var million = []struct {
	name string
	load Load
}{
	{"keyless", Load{Requests: 1e6, AnswerKiB: 1, Connections: 1e6, APIs: 1000}},
	{"key, rate and quota, counted in each gateway", Load{Requests: 1e6, Governed: 1, AnswerKiB: 1, Keys: 1e6, Connections: 1e6, APIs: 1000, KeyWrites: 100}},
	{"… counted in a shared store, 10,000 keys", Load{Requests: 1e6, Governed: 1, Shared: true, AnswerKiB: 1, Keys: 1e4, Connections: 1e6, APIs: 1000, KeyWrites: 100}},
	{"… 1,000,000 keys", Load{Requests: 1e6, Governed: 1, Shared: true, AnswerKiB: 1, Keys: 1e6, Connections: 1e6, APIs: 1000, KeyWrites: 100}},
	{"… and half of it GraphQL", Load{Requests: 1e6, Governed: 1, GraphQL: 0.5, Unseen: 0.005, Shared: true, AnswerKiB: 1, RequestKiB: 0.2, Keys: 1e6, Connections: 1e6, APIs: 1000, KeyWrites: 100}},
	{"… and answers of 16 KiB", Load{Requests: 1e6, Governed: 1, Shared: true, AnswerKiB: 16, Keys: 1e6, Connections: 1e6, APIs: 1000, KeyWrites: 100}},
	{"… and 100,000 APIs", Load{Requests: 1e6, Governed: 1, Shared: true, AnswerKiB: 1, Keys: 1e6, Connections: 1e6, APIs: 1e5, KeyWrites: 100}},
}

// ones are kinds of requests, of which it is asked how many one gateway carries.
var ones = []struct {
	name string
	load Load
}{
	{"keyless", Load{AnswerKiB: 1}},
	{"key, rate and quota, counted in the gateway", Load{Governed: 1, AnswerKiB: 1}},
	{"… counted in a shared store", Load{Governed: 1, Shared: true, AnswerKiB: 1}},
	{"… GraphQL, seen before", Load{Governed: 1, GraphQL: 1, Shared: true, AnswerKiB: 1}},
	{"… GraphQL, never seen", Load{Governed: 1, GraphQL: 1, Unseen: 1, Shared: true, AnswerKiB: 1}},
	{"… answers of 16 KiB", Load{Governed: 1, Shared: true, AnswerKiB: 16}},
	{"… answers of 64 KiB", Load{Governed: 1, Shared: true, AnswerKiB: 64}},
}

// Tables returns the tables of the page, by the names that they have there.
func Tables(c Costs) map[string]string {
	return map[string]string{"gateway": oneGateway(c), "store": oneStore(c), "million": ofMillion(c), "first": breaksFirst(c)}
}

func oneGateway(c Costs) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| Requests with | CPU µs | one core, requests/s | %v cores, requests/s | of a %v Gbit/s line |\n|---|---|---|---|---|\n", box.Cores, box.Gbit)
	for _, one := range ones {
		p := Plan{Gateways: 1}
		one.load.Requests = 1
		c.gateway(one.load, &p)
		core, all := 1e6/p.CPU*box.Utilisation, 1e6/p.CPU*c.coresOf(box)
		fmt.Fprintf(&b, "| %s | %.1f | %s | %s | %.0f %% |\n", one.name, p.CPU, round(core), round(all), 100*p.Inbound*all/box.Gbit)
	}
	return b.String()
}

func oneStore(c Costs) string {
	var b strings.Builder
	b.WriteString("| | CPU µs | at 70 % of one core, per second |\n|---|---|---|\n")
	for _, one := range []struct {
		name string
		cost float64
	}{
		{"rate and quota of a request, one server, 64 waiting", c.StoreCount},
		{"… with 256 waiting, which is the most it does", c.StoreFull},
		{"rate and quota of a request, a primary of a cluster", c.StoreCount * c.StoreCluster},
		{"a session, asked for when a gateway's copy is a minute old", c.StoreLookup},
	} {
		fmt.Fprintf(&b, "| %s | %.1f | %s |\n", one.name, one.cost, round(1e6/one.cost*box.Utilisation))
	}
	return b.String()
}

func ofMillion(c Costs) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| A million requests/s, 1,000,000 connections | gateways of %v cores | memory of each | Gbit/s into each | store primaries | their memory | sessions asked of them, per second | Postgres: statements/s, cores | definitions |\n", box.Cores)
	b.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	for _, m := range million {
		p, err := c.Plan(m.load, box)
		if err != nil {
			return err.Error() // one of the loads above is wrong, and a test says so
		}
		stores, memory, lookups := "–", "–", "–"
		if p.Stores > 0 {
			stores, memory, lookups = fmt.Sprint(p.Stores), size(p.StoreMiB), round(p.Lookups)
		}
		fmt.Fprintf(&b, "| %s | **%d** | %s | %.1f | %s | %s | %s | %.1f, %.1f | %s |\n",
			m.name, p.Gateways, size(p.GatewayMiB), p.Inbound, stores, memory, lookups, p.Statements+m.load.KeyWrites*statementsPerKey, p.DatabaseCPU, size(p.BundleMiB))
	}
	return b.String()
}

// statementsPerKey is how many statements a key that is written takes: the key,
// the outbox in and out, the audit, begin and commit.
const statementsPerKey = 6

// A bound is how many requests per second something carries that cannot be had
// twice without doing something about it.
type bound struct {
	what   string
	most   float64
	remedy string
}

// breaksFirst lists what ends growth, of a plant that grows by gateways alone.
func breaksFirst(c Costs) string {
	const keys, gateways = 1e6, 20
	lookups := func(requests float64) float64 {
		return Load{Requests: requests, Governed: 1, Shared: true, Keys: keys}.lookups(gateways)
	}
	bounds := []bound{
		{"One store counts", box.Utilisation * 1e6 / c.StoreCount, "a second store for other APIs or regions; a cluster; or the balancer sends a key always to the same gateway, which counts it itself"},
		{"One gateway of 8 cores", 1e6 / c.Shared * c.coresOf(box), "another gateway: nothing is shared but the store"},
		{"One store counts and 20 gateways ask it for the sessions of 1,000,000 keys", largest(func(requests float64) bool {
			return (requests*c.StoreCount+lookups(requests)*c.StoreLookup)/1e6 <= box.Utilisation
		}), "a longer `keys.cache_ttl`: changes of keys reach gateways at once all the same; the balancer sends a key always to the same few gateways"},
		{"The same on a cluster of 16 primaries", largest(func(requests float64) bool {
			return (requests*c.StoreCount*c.StoreCluster+lookups(requests)*c.StoreLookup)/1e6 <= 16*box.Utilisation
		}), "more primaries; several independent plants, each with keys of its own"},
		{"The network of one store, 10 Gbit/s", 10e9 / 8 * box.Utilisation / c.StoreBytes, "as for the store"},
		{"The network of one gateway, 25 Gbit/s, answers of 16 KiB", box.Gbit * box.Utilisation * 1e9 / 8 / 1024 / (16 + 2*c.HeadKiB), "another gateway"},
	}
	slices.SortStableFunc(bounds, func(a, b bound) int { return int(math.Copysign(1, a.most-b.most)) })
	var b strings.Builder
	b.WriteString("| What | carries, requests/s | then |\n|---|---|---|\n")
	for _, one := range bounds {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", one.what, round(one.most), one.remedy)
	}
	return b.String()
}

// largest finds how much is still carried.
func largest(carried func(float64) bool) float64 {
	low, high := 0.0, 1e9
	for range 60 {
		if middle := (low + high) / 2; carried(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// round writes a number as exactly as a model knows it, with three digits.
func round(v float64) string {
	if v <= 0 {
		return "0"
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-2)
	digits := fmt.Sprintf("%.0f", math.Round(v/unit)*unit)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

func size(mib float64) string {
	if mib >= 1024 {
		return fmt.Sprintf("%.1f GiB", mib/1024)
	}
	return fmt.Sprintf("%.0f MiB", mib)
}

// Fill replaces what stands between the marks of each table in a page. A table
// that has no place there is an error, and so is a place for one that is not.
func Fill(page string, tables map[string]string) (string, error) {
	for name, table := range tables {
		begin, end := "<!-- sizing: "+name+" -->\n", "<!-- end -->\n"
		before, rest, found := strings.Cut(page, begin)
		_, after, ended := strings.Cut(rest, end)
		if !found || !ended {
			return "", fmt.Errorf("the page has no place for the table %q: it must hold %s and %s", name, strings.TrimSpace(begin), strings.TrimSpace(end))
		}
		page = before + begin + "\n" + table + "\n" + end + after
	}
	if places := strings.Count(page, "<!-- sizing: "); places != len(tables) {
		return "", fmt.Errorf("the page has places for %d tables, and there are %d", places, len(tables))
	}
	return page, nil
}
