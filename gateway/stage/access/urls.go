package access

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"runtime"
	"sync"
	"weak"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/rights"
)

// urlRules are the methods and paths that a key may use. It implements
// pipeline.URLRules.
type urlRules struct{ rules []urlRule }

type urlRule struct {
	methods [][]byte
	path    *match.Pattern
}

// Allows implements pipeline.URLRules.
func (u *urlRules) Allows(method, path []byte) bool {
	for i := range u.rules {
		if u.rules[i].lists(method) && u.rules[i].path.Match(path) {
			return true
		}
	}
	return false
}

func (r *urlRule) lists(method []byte) bool {
	for _, m := range r.methods {
		if bytes.Equal(m, method) {
			return true
		}
	}
	return false
}

type digest [sha256.Size]byte

// urlTable shares rules between keys with the same list, such as all keys of a policy.
// It holds rules weakly: they are freed with the last grant that uses them.
type urlTable struct {
	mu    sync.Mutex
	known map[digest]weak.Pointer[urlRules]
}

// find returns the rules of a list, or nil when it is empty: then every path is
// allowed.
func (t *urlTable) find(list []rights.Item[definition.AllowedURL]) (*urlRules, error) {
	if len(list) == 0 {
		return nil, nil
	}
	id := digestOf(list)
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.known[id].Value(); known != nil {
		return known, nil
	}
	made, err := compileURLs(list)
	if err != nil {
		return nil, err
	}
	t.known[id] = weak.Make(made)
	runtime.AddCleanup(made, t.forget, id)
	return made, nil
}

// forget removes rules that were freed, unless they have been compiled again.
func (t *urlTable) forget(id digest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known[id].Value() == nil {
		delete(t.known, id)
	}
}

func compileURLs(list []rights.Item[definition.AllowedURL]) (*urlRules, error) {
	u := &urlRules{rules: make([]urlRule, 0, len(list))}
	for _, item := range list {
		path, err := match.CompileExpression(item.Value.URL)
		if err != nil {
			return nil, fmt.Errorf("allowed_urls: url %q: %w", item.Value.URL, err)
		}
		rule := urlRule{path: path}
		for _, method := range item.Value.Methods {
			rule.methods = append(rule.methods, []byte(method))
		}
		u.rules = append(u.rules, rule)
	}
	return u, nil
}

// digestOf returns the digest of a list.
func digestOf(list []rights.Item[definition.AllowedURL]) (sum digest) {
	h := sha256.New()
	for _, item := range list {
		write(h, item.Value.URL)
		writeNumber(h, len(item.Value.Methods))
		for _, method := range item.Value.Methods {
			write(h, method)
		}
	}
	h.Sum(sum[:0])
	return sum
}

// write adds a text with its length, so that different lists have different input.
func write(h hash.Hash, text string) {
	writeNumber(h, len(text))
	h.Write([]byte(text))
}

func writeNumber(h hash.Hash, n int) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:])
}
