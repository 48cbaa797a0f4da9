package certs

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// asked knows for which names clients are asked for a certificate: where an API
// that wants one may be called. A browser shows its user a dialogue then, so that
// it is not done everywhere.
type asked struct {
	domains bool // APIs answer on their own domain only
	current atomic.Pointer[map[string]int]
	mu      sync.Mutex
}

// everywhere stands for all names.
const everywhere = ""

// wants tells whether clients that ask for a name are asked for a certificate.
func (a *asked) wants(name string) bool {
	counts := a.current.Load()
	if counts == nil {
		return false
	}
	return (*counts)[everywhere] > 0 || (*counts)[name] > 0
}

// change is told which APIs came and which left.
func (a *asked) change(came, gone []*pipeline.API) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var next map[string]int // nil: nothing changes
	count := func(apis []*pipeline.API, by int) {
		for _, api := range apis {
			if !Wanted(api.Definition) {
				continue
			}
			if next == nil {
				next = make(map[string]int)
				if counts := a.current.Load(); counts != nil {
					maps.Copy(next, *counts)
				}
			}
			name := a.nameOf(api.Definition)
			if next[name] += by; next[name] <= 0 {
				delete(next, name)
			}
		}
	}
	count(came, 1)
	count(gone, -1)
	if next != nil {
		a.current.Store(&next)
	}
}

func (a *asked) nameOf(def *definition.API) string {
	if !a.domains {
		return everywhere
	}
	return strings.ToLower(strings.TrimSuffix(def.Domain, "."))
}

// Wanted tells whether an API wants to know the certificates of its clients.
func Wanted(def *definition.API) bool {
	return def.UseMutualTLS || !def.UseKeyless && def.Token().UseCertificate
}
