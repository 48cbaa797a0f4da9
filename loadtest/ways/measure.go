package ways

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sluicegate/sluice/loadtest/gate"
	"github.com/sluicegate/sluice/loadtest/load"
)

// A Bench says how ways are measured, and where results go.
type Bench struct {
	Site     gate.Site
	Conns    int           // kept connections of the client
	Rounds   int           // in each of which every way has a turn beside the token's
	Round    time.Duration // of a turn, what is measured of it
	Body     string        // size of the answer: 1k, 16k or 64k
	Only     string        // what the name of a way must contain
	Out      io.Writer
	Progress func(format string, args ...any)
}

// settle comes before what is measured of a turn: the neighbour's last requests
// are over, and the caches of the processor filled.
const settle = 80 * time.Millisecond

// series is all turns of a way, and those of the token beside them.
type series struct {
	way
	client *load.Client
	token  *series // nil: it is what others are compared with

	own, beside []float64 // CPU µs per request, by round
	rates       []float64 // requests per second
}

// Measure prints a table: what each way costs beside a token.
func Measure(ctx context.Context, b Bench) error {
	b.Progress("starting a gateway")
	s, err := start(ctx, b.Site)
	if err != nil {
		return err
	}
	defer s.Process.Stop()
	all := b.connect(s)
	defer func() {
		for _, one := range all {
			one.client.Close()
			one.token.client.Close()
		}
	}()
	for _, one := range all { // what is seen for the first time does not count
		b.Progress("first turn of %s", one.name)
		b.introduce(ctx, s, one.way)
		for _, who := range []*series{one.token, one} {
			if _, _, err := b.turn(ctx, s, who); err != nil {
				return err
			}
		}
	}
	for round := range b.Rounds {
		b.Progress("round %d of %d", round+1, b.Rounds)
		for i := range all {
			if err := b.pair(ctx, s, all[(round+i)%len(all)], round%2 == 1); err != nil {
				return err
			}
		}
	}
	b.print(all)
	return nil
}

// connect makes the clients: one for each way, and one for each token.
func (b Bench) connect(s *site) []*series {
	of := func(w way) *series { return &series{way: w, client: load.New(b.plan(s, w))} }
	tokens := map[bool]*series{false: of(s.yardstick(nil)), true: of(s.yardstick(s.plain))}
	var all []*series
	for _, w := range s.ways() {
		if !strings.Contains(strings.ToLower(w.name), strings.ToLower(b.Only)) {
			continue
		}
		one := of(w)
		one.token = tokens[w.tls != nil]
		all = append(all, one)
	}
	return all
}

func (b Bench) plan(s *site, w way) load.Plan {
	addr := s.Addr
	if w.tls != nil {
		addr = s.Secure
	}
	head := []string{
		"GET /" + w.api + "/" + b.Body + w.query + " HTTP/1.1", "Host: " + addr,
		"User-Agent: loadtest/1.0", "Accept: */*", "Accept-Encoding: gzip",
	}
	whole := []byte(strings.Join(append(head, w.lines...), "\r\n") + "\r\n\r\n")
	body, _ := load.Body([]byte(b.Body))
	return load.Plan{
		Addr: addr, Conns: b.Conns, TLS: w.tls, Want: load.Want{Status: 200, Body: body},
		Request: func(dst []byte, _ uint64) []byte { return append(dst, whole...) },
	}
}

// introduce shows credentials by a single connection: a password that was not seen
// before, shown by very many at once, would look like guessing.
func (b Bench) introduce(ctx context.Context, s *site, w way) {
	plan := b.plan(s, w)
	plan.Conns = 1
	first := load.New(plan)
	defer first.Close()
	first.Run(ctx, settle)
}

// pair is a turn of a way and one of the token, the token last if so said.
func (b Bench) pair(ctx context.Context, s *site, one *series, tokenLast bool) error {
	order := []*series{one.token, one}
	if tokenLast {
		slices.Reverse(order)
	}
	for _, who := range order {
		micros, rate, err := b.turn(ctx, s, who)
		if err != nil {
			return err
		}
		if who == one {
			one.own, one.rates = append(one.own, micros), append(one.rates, rate)
		} else {
			one.beside = append(one.beside, micros)
		}
	}
	return nil
}

// turn keeps the gateway busy with one way, and returns the CPU time of a request,
// in microseconds, and requests per second. They are read in the middle of the
// load. An answer that is wrong ends the measurement.
func (b Bench) turn(ctx context.Context, s *site, who *series) (micros, rate float64, err error) {
	ended := make(chan struct{})
	go func() {
		who.client.Run(ctx, settle+b.Round+settle/2)
		close(ended)
	}()
	time.Sleep(settle)
	began, good := time.Now(), who.client.Stats().Good
	from, err := s.Process.CPU()
	time.Sleep(b.Round)
	to, err2 := s.Process.CPU()
	took, n := time.Since(began), who.client.Stats().Good-good
	<-ended
	switch {
	case ctx.Err() != nil:
		return 0, 0, ctx.Err()
	case err != nil:
		return 0, 0, err
	case err2 != nil:
		return 0, 0, err2
	case who.client.FirstError() != nil:
		return 0, 0, fmt.Errorf("%s: %w", who.name, who.client.FirstError())
	case n == 0:
		return 0, 0, fmt.Errorf("%s: no answer in %v\n%s", who.name, took, s.Process.Log())
	}
	return float64(to-from) / float64(time.Microsecond) / float64(n), float64(n) / took.Seconds(), nil
}

// print compares each way with the token's turns beside its own.
func (b Bench) print(all []*series) {
	fmt.Fprintf(b.Out, "### Ways in, CPU time per request of one gateway, closed loop, %d rounds of %v; each beside the token's own turn\n\n", b.Rounds, b.Round)
	fmt.Fprint(b.Out, "| | CPU µs, least | median | token's, least | median | ratio of the least | median of ratios | of rounds, least – most | bound | | requests/s | answered | wrong |\n"+
		"|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, one := range all {
		ratios := make([]float64, len(one.own))
		for i := range one.own {
			ratios[i] = one.own[i] / one.beside[i]
		}
		stats := one.client.Stats()
		fmt.Fprintf(b.Out, "| %s | %.1f | %.1f | %.1f | %.1f | **%.3f** | **%.3f** | %.2f – %.2f | %s | %.0f | %d | %d |\n",
			one.name, slices.Min(one.own), Median(one.own), slices.Min(one.beside), Median(one.beside),
			slices.Min(one.own)/slices.Min(one.beside), Median(ratios), slices.Min(ratios), slices.Max(ratios),
			verdict(one.bound, Median(ratios)), Median(one.rates), stats.Good, stats.Bad)
	}
	fmt.Fprintln(b.Out)
}

// verdict fills the columns of the bound.
func verdict(bound, ratio float64) string {
	switch {
	case bound == 0:
		return "noise |"
	case ratio <= bound:
		return fmt.Sprintf("%.2f | met", bound)
	}
	return fmt.Sprintf("%.2f | **above**", bound)
}

// Median returns the middle of values, without changing them; 0 of none.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
