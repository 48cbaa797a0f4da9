package snapshot

import (
	"encoding/binary"
	"slices"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/cache"
	"github.com/sluicegate/sluice/gateway/stage/transform"
)

// setFingerprint gives an API a fingerprint if its responses do not depend on the
// caller, so that an API that calls it may cache them. An API that caches has none:
// nothing in front of it needs to cache again.
func (c *Compiler) setFingerprint(api *pipeline.API) {
	if c.fingerprints == nil || !api.Definition.UseKeyless || len(api.Versions) != 1 || !cache.AsksAsUsual(api.Definition) {
		return
	}
	v := api.Versions[0]
	for _, stages := range [...][]pipeline.CompiledStage{api.Entry, v.Request, v.Response} {
		if slices.ContainsFunc(stages, dependsOnCaller) {
			return
		}
	}
	api.Fingerprint, api.Next = c.fingerprints.Add(1), refOf(v.Upstream)
}

// dependsOnCaller reports whether what a stage does may differ between calls of the
// same URL.
func dependsOnCaller(s pipeline.CompiledStage) bool {
	return s.Kind.CallerDependent || transform.Varies(s.Stage)
}

// AppendFingerprints implements pipeline.InternalCalls. The APIs are looked up in
// the snapshot that serves the request, and fingerprints are never reused: responses
// of APIs that have changed since are not found again.
func (s *Snapshot) AppendFingerprints(dst []byte, ex *pipeline.Exchange, to *pipeline.APIRef) ([]byte, bool) {
	api := ex.API
	for left := pipeline.MaxInternalCalls - ex.Depth(); to != nil; left-- {
		if left == 0 {
			return dst, false
		}
		if api = s.resolve(api, to); api == nil || api.Fingerprint == 0 {
			return dst, false
		}
		dst, to = binary.LittleEndian.AppendUint64(dst, api.Fingerprint), api.Next
	}
	return dst, true
}
