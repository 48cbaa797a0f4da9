package graphql

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/graphql/request"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

var (
	untrusted = pipeline.NewRejection(pipeline.ReasonUntrustedDocument, 403, "Only stored documents can be run; this is none of them")
	wrongHash = request.Invalid(400, "provided sha does not match query")
)

// A document is a text that requests can refer to by its hash.
type document struct {
	text  []byte
	known map[string]*known // by operation name, of valid operations; nil for a document that a client registered
}

// documents are the stored documents of one API.
type documents struct {
	stored map[digest]*document
	more   *registry // nil: clients cannot register any
}

func newDocuments(t *definition.GraphQLTrustedDocuments) documents {
	if t == nil {
		return documents{}
	}
	d := documents{stored: make(map[digest]*document, len(t.Documents))}
	for _, text := range t.Documents {
		d.stored[sha256.Sum256([]byte(text))] = &document{text: []byte(text)}
	}
	if t.Register {
		d.more = &registry{known: make(map[digest]*document)}
	}
	return d
}

// prepare examines the stored documents. Their results are kept outside the
// bounded cache.
func (s *Stage) prepare() {
	w := new(worker)
	for hash, doc := range s.documents.stored {
		doc.known = make(map[string]*known)
		names := []string{""}
		if syntax.Parse(&w.doc, doc.text, s.opts.Ceilings.limits()) == nil {
			for i := range w.doc.Operations {
				names = append(names, w.doc.Text(w.doc.Operations[i].Name))
			}
		}
		for _, name := range names {
			found := s.inspect(w, doc.text, []byte(name), false)
			if found.facts != nil {
				doc.known[name] = found
			} else if len(names) <= 2 || name != "" {
				s.opts.Log.Warn("stored document cannot be run", "api", s.api, "hash", hex.EncodeToString(hash[:]), "operation", name, "err", found.refusal.strict.Message)
				break
			}
		}
	}
}

// resolve returns the document that a request names, or whose text it has. It
// returns nil if the document is not stored and need not be.
func (d *documents) resolve(r *request.Request, trustedOnly bool) (*document, *pipeline.Rejection) {
	if r.Hash == nil && !trustedOnly {
		return nil, nil
	}
	var named, sum digest
	if r.Hash != nil {
		_, _ = hex.Decode(named[:], r.Hash) // the decoder has checked that it has 64 digits
	}
	if len(r.Query) > 0 {
		sum = sha256.Sum256(r.Query)
		if r.Hash != nil && named != sum {
			return nil, wrongHash
		}
		named = sum
	}
	if doc := d.stored[named]; doc != nil {
		return doc, nil
	}
	switch {
	case len(r.Query) > 0 && trustedOnly:
		return nil, untrusted
	case len(r.Query) > 0:
		return d.more.find(named), nil
	case trustedOnly:
		return nil, request.NotFound
	}
	if doc := d.more.find(named); doc != nil {
		return doc, nil
	}
	if d.more == nil && len(d.stored) == 0 {
		return nil, request.NotSupported
	}
	return nil, request.NotFound
}

// register stores the text of a request under its hash if clients may register
// documents. resolve has checked the hash.
func (d *documents) register(r *request.Request) {
	if d.more == nil {
		return
	}
	d.more.add(sha256.Sum256(r.Query), r.Query)
}

// Bounds of what clients can register with one API, in bytes.
const (
	maxRegistered = 4 << 20
	maxDocument   = 64 << 10
)

// A registry holds the newest documents that clients have registered.
type registry struct {
	mu    sync.RWMutex
	known map[digest]*document
	order []digest // oldest first
	bytes int
}

// find returns a document or nil. The registry may be nil.
func (r *registry) find(hash digest) *document {
	if r == nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.known[hash]
}

// registered is the memory of a document besides its text, in bytes.
const registered = 200

func (r *registry) add(hash digest, text []byte) {
	if len(text) > maxDocument {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[hash] != nil {
		return
	}
	r.known[hash] = &document{text: append([]byte(nil), text...)}
	r.order = append(r.order, hash)
	r.bytes += len(text) + registered
	for r.bytes > maxRegistered {
		oldest := r.order[0]
		r.order = r.order[1:]
		r.bytes -= len(r.known[oldest].text) + registered
		delete(r.known, oldest)
	}
}
