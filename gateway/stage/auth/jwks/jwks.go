// Package jwks caches the keys that token issuers publish (RFC 7517). It fetches them
// when they are first needed, regularly after that, and when a token names a key that is
// unknown.
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

	"github.com/sluicegate/sluice/internal/dialguard"
)

// Options configure Sets. All of them are required.
type Options struct {
	Addresses dialguard.Policy // that may be fetched from
	Timeout   time.Duration    // for one fetch
	Refresh   time.Duration    // between two fetches of a set in use
	Retry     time.Duration    // least time between two fetches caused by tokens
	Stale     time.Duration    // how long keys are used while their issuer cannot be reached
	Log       *slog.Logger
}

// maxSet is the largest key set that is read, in bytes.
const maxSet = 1 << 20

// fetchers is how many sets are refreshed at the same time.
const fetchers = 4

// Sets has one Set per URL, as long as it is in use.
type Sets struct {
	opts   Options
	client *http.Client
	now    func() time.Time

	mu    sync.Mutex
	byURL map[string]weak.Pointer[Set]
}

// New returns Sets without keys. Run refreshes those that are in use.
func New(o Options) *Sets {
	transport := o.Addresses.Transport(o.Timeout)
	transport.ForceAttemptHTTP2 = true
	return &Sets{
		opts: o, now: time.Now, byURL: make(map[string]weak.Pointer[Set]),
		client: &http.Client{Transport: transport, CheckRedirect: stayThere},
	}
}

// stayThere follows redirects within one origin only, as another host is not the
// issuer.
func stayThere(next *http.Request, before []*http.Request) error {
	first := before[0].URL
	if len(before) > 3 || next.URL.Host != first.Host || next.URL.Scheme != first.Scheme {
		return http.ErrUseLastResponse
	}
	return nil
}

// Get returns the set at a URL.
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

// Run refreshes the sets in use until ctx ends.
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

// refresh fetches every set that is in use and was fetched before.
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
			_ = set.fetch(true) // logged; the current keys stay in use
		})
	}
	done.Wait()
}

// held returns the sets in use, and removes the others.
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
