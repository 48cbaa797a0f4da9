package pipeline

// A Play makes an exchange one of the playground: an operator sends it from within the
// gateway's process. It passes the stages and goes upstream as a client's request does.
// The caller may be named instead of showing a credential, so that none is needed.
type Play struct {
	KeyHash string // identity of the key that calls; "": none is named
	Policy  string // id of the policy that calls as if a key had it alone; "": none is named
	Counted bool   // the call is charged under rates and quotas; otherwise they are only evaluated
}

// below returns what an internal call of an exchange is: one without the caller if the
// calling API strips credentials.
func (p *Play) below(ex *Exchange) *Play {
	if ex.Session == nil || !ex.API.Definition.StripAuthData {
		return p
	}
	return &Play{Counted: p.Counted}
}

// NamesCaller reports whether the exchange may name its caller, by KeyHash or by
// Play.Policy, in place of a credential.
func (ex *Exchange) NamesCaller() bool { return ex.DryRun != nil || ex.Play != nil }

// IsUncounted reports whether limits are evaluated without charging the exchange.
func (ex *Exchange) IsUncounted() bool {
	return ex.DryRun != nil || ex.Play != nil && !ex.Play.Counted
}
