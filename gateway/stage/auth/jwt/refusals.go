package jwt

import (
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/event"
)

var (
	malformed      = unauthorized(pipeline.ReasonTokenMalformed, "token is malformed")
	wrongAlgorithm = unauthorized(pipeline.ReasonTokenSignature, "signing algorithm is not allowed")
	unknownKey     = unauthorized(pipeline.ReasonTokenSignature, "signing key is not known")
	badSignature   = unauthorized(pipeline.ReasonTokenSignature, "signature is invalid")
	otherSecret    = unauthorized(pipeline.ReasonTokenSignature, "signature is invalid") // explanations distinguish it from badSignature
	expired        = unauthorized(pipeline.ReasonAuthExpired, "token has expired")
	endless        = unauthorized(pipeline.ReasonTokenClaims, "token has no expiry")
	notYet         = unauthorized(pipeline.ReasonTokenClaims, "token is not valid yet")
	fromTheFuture  = unauthorized(pipeline.ReasonTokenClaims, "token was issued in the future")
	wrongIssuer    = unauthorized(pipeline.ReasonTokenClaims, "issuer is not allowed")
	wrongAudience  = unauthorized(pipeline.ReasonTokenClaims, "audience is not allowed")
	noIdentity     = unauthorized(pipeline.ReasonTokenClaims, "token names no identity")
	noPolicy       = refusal(pipeline.ReasonTokenClaims, 403, "no policy for this token")
	unavailable    = pipeline.NewRejection(pipeline.ReasonKeyStoreUnavailable, 503, "Keys cannot be checked at the moment, please try again")
)

// UnknownSigner refuses a token that does not name a key with a secret. To clients it
// looks like a bad signature, so that they cannot find out which keys exist.
var UnknownSigner = unauthorized(pipeline.ReasonTokenSignature, "signature is invalid")

func unauthorized(reason pipeline.Reason, why string) *pipeline.Rejection {
	return refusal(reason, 401, why)
}

func refusal(reason pipeline.Reason, status int, why string) *pipeline.Rejection {
	return pipeline.NewRejection(reason, status, "Key not authorized: "+why).Raising(event.AuthFailure)
}
