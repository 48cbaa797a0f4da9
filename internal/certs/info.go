package certs

import "time"

// Info is the description of a certificate in lists. None of it is secret.
type Info struct {
	// Id of the certificate: the organisation, then its SHA-256.
	ID string `json:"id"`
	// SHA-256 of the certificate in hexadecimal.
	Fingerprint string `json:"fingerprint"`
	// Whether the private key is stored too.
	HasPrivate bool `json:"has_private"`
	// Whether it is the certificate of an authority, which may sign those of clients or upstreams.
	IsCA bool `json:"is_ca"`
	// Whether gateways show it to clients: its private key is stored too, and it is neither of an
	// authority (CA:TRUE) nor for clients alone.
	MayServe bool `json:"may_serve"`
	// Distinguished name that the certificate is for.
	Subject string `json:"subject"`
	// Distinguished name of the authority that signed it.
	Issuer string `json:"issuer"`
	// Names of hosts that the certificate is for.
	DNSNames []string `json:"dns_names"`
	// Time from which it is valid.
	NotBefore time.Time `json:"not_before"`
	// Time until which it is valid.
	NotAfter time.Time `json:"not_after"`
}

// Info returns the description of the certificate of an organisation. hasPrivate: its
// private key is stored too.
func (c *Certificate) Info(org string, hasPrivate bool) Info {
	return Info{
		ID: c.ID(org), Fingerprint: c.Sum, HasPrivate: hasPrivate, IsCA: c.Leaf.IsCA, MayServe: hasPrivate && c.forServers(),
		Subject: c.Leaf.Subject.String(), Issuer: c.Leaf.Issuer.String(), DNSNames: c.Names(),
		NotBefore: c.Leaf.NotBefore.UTC(), NotAfter: c.Leaf.NotAfter.UTC(),
	}
}
