package certs

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// clientAuth holds the server names for which clients are asked for a certificate, because an
// API there uses it. Elsewhere they are not asked, since browsers then show a dialogue.
type clientAuth struct {
	domains bool // APIs are served on their own domain only
	current atomic.Pointer[map[string]int]
	mu      sync.Mutex
}

// everywhere is the key for all names.
const everywhere = ""

// wants reports whether clients are asked for a certificate when they connect to a name.
func (a *clientAuth) wants(name string) bool {
	counts := a.current.Load()
	if counts == nil {
		return false
	}
	return (*counts)[everywhere] > 0 || (*counts)[name] > 0
}

// change adds and removes APIs.
func (a *clientAuth) change(came, gone []*pipeline.API) {
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

func (a *clientAuth) nameOf(def *definition.API) string {
	if !a.domains {
		return everywhere
	}
	return strings.ToLower(strings.TrimSuffix(def.Domain, "."))
}

// Wanted reports whether an API uses the certificates of its clients.
func Wanted(def *definition.API) bool {
	return def.UseMutualTLS || !def.UseKeyless && def.Token().UseCertificate
}
