package auth

import (
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// A mode is one place where a credential may stand. Its credential is empty when
// there is none; it may alias the request. It does not allocate.
type mode interface {
	credential(ex *pipeline.Exchange) []byte
}

// modesOf returns the modes that a definition asks for, in the order in which
// they are tried: the first that finds a credential decides.
func modesOf(def *definition.API) []mode {
	return []mode{newToken(def.Token())}
}
