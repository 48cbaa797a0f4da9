package certs

// ACMEEntry is a value that gateways share for ACME.
type ACMEEntry struct {
	// Account, certificate or challenge, in base64. It is encrypted at rest.
	Value []byte `json:"value"`
	// Seconds until the value is forgotten; 0: never.
	ExpiresIn int64 `json:"expires_in,omitempty"`
}

// MaxACMEValue bounds the value of an ACMEEntry, in bytes.
const MaxACMEValue = MaxPEM

// ACMELease is a request for the right to order a certificate, or the end of the attempt.
type ACMELease struct {
	// Text that identifies the attempt, chosen by the gateway.
	Holder string `json:"holder"`
	// Seconds in which no other attempt may begin.
	Seconds int64 `json:"seconds"`
	// Attempts that failed one after another; only at the end of an attempt.
	Failures int32 `json:"failures,omitempty"`
	// Reason for which the attempt failed, at most 1000 bytes; only at the end of an attempt.
	Error string `json:"error,omitempty"`
}

// ACMELeased is the answer to an ACMELease.
type ACMELeased struct {
	// Whether the gateway may order the certificate.
	Granted bool `json:"granted"`
	// Attempts that failed one after another.
	Failures int32 `json:"failures"`
}
