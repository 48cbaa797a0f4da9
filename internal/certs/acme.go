package certs

// ACMEEntry is a value that gateways share for ACME.
type ACMEEntry struct {
	Value     []byte `json:"value" doc:"in base64"`
	ExpiresIn int64  `json:"expires_in,omitempty" doc:"seconds until it is forgotten; 0: never"`
}

// MaxACMEValue bounds the value of an ACMEEntry, in bytes.
const MaxACMEValue = MaxPEM

// ACMELease is a request for the right to order a certificate, or the end of the attempt.
type ACMELease struct {
	Holder   string `json:"holder" doc:"identifies the attempt"`
	Seconds  int64  `json:"seconds" doc:"how long no other attempt may begin"`
	Failures int32  `json:"failures,omitempty" doc:"attempts that failed one after another"`
	Error    string `json:"error,omitempty" doc:"why the attempt failed"`
}

// ACMELeased is the answer to an ACMELease.
type ACMELeased struct {
	Granted  bool  `json:"granted"`
	Failures int32 `json:"failures" doc:"attempts that failed one after another"`
}
