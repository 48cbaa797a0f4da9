// Package jwks keeps the keys at hand that token issuers publish (RFC 7517): it
// fetches them when they are first needed, regularly after that, and when a
// token names a key that is not known.
package jwks

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"
	"weak"

	"github.com/sluicegate/sluice/internal/guard"
)

// Options says how keys are fetched. All of it is required.
type Options struct {
	Addresses guard.Policy  // that may be called
	Timeout   time.Duration // for one fetch
	Refresh   time.Duration // between two fetches of a set in use
	Retry     time.Duration // least time between two fetches that tokens bring about
	Stale     time.Duration // how long keys are used whose issuer cannot be asked
	Log       *slog.Logger
}

// maxSet is the largest answer that is read, in bytes.
const maxSet = 1 << 20

// fetchers is how many sets are refreshed at the same time.
const fetchers = 4

// Sets holds one Set for each address, as long as somebody uses it.
type Sets struct {
	opts   Options
	client *http.Client
	now    func() time.Time

	mu    sync.Mutex
	byURL map[string]weak.Pointer[Set]
}

// New returns Sets that know no keys yet. Run keeps those current that are in
// use.
func New(o Options) *Sets {
	transport := o.Addresses.Transport(o.Timeout)
	transport.ForceAttemptHTTP2 = true
	return &Sets{
		opts: o, now: time.Now, byURL: make(map[string]weak.Pointer[Set]),
		client: &http.Client{Transport: transport, CheckRedirect: stayThere},
	}
}

// stayThere follows redirections within one origin only: keys that another host
// names are not those of the issuer.
func stayThere(next *http.Request, before []*http.Request) error {
	first := before[0].URL
	if len(before) > 3 || next.URL.Host != first.Host || next.URL.Scheme != first.Scheme {
		return http.ErrUseLastResponse
	}
	return nil
}

// Get returns the set of an address.
func (s *Sets) Get(url string) *Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	if set := s.byURL[url].Value(); set != nil {
		return set
	}
	set := &Set{url: url, sets: s}
	s.byURL[url] = weak.Make(set)
	return set
}

// Run fetches anew what is in use, until ctx ends.
func (s *Sets) Run(ctx context.Context) {
	t := time.NewTicker(s.opts.Refresh)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			s.refresh(ctx)
		}
	}
}

// refresh fetches every set that somebody holds and that was needed before.
func (s *Sets) refresh(ctx context.Context) {
	turns := make(chan struct{}, fetchers)
	var done sync.WaitGroup
	for _, set := range s.held() {
		if ctx.Err() != nil {
			break
		}
		turns <- struct{}{}
		done.Go(func() {
			defer func() { <-turns }()
			_ = set.fetch(true) // it is logged, and the keys at hand go on
		})
	}
	done.Wait()
}

// held returns the sets in use, and forgets the others.
func (s *Sets) held() []*Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	var held []*Set
	for url, pointer := range s.byURL {
		set := pointer.Value()
		switch {
		case set == nil:
			delete(s.byURL, url)
		case set.state.Load() != nil:
			held = append(held, set)
		}
	}
	return held
}

// get fetches and reads a set.
func (s *Sets) get(ctx context.Context, url string) (*Keys, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	req.Header.Set("User-Agent", "sluice")
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers %s", resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxSet+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > maxSet:
		return nil, fmt.Errorf("its answer is larger than %d MiB", maxSet>>20)
	}
	return Parse(body)
}
