package certs

import "time"

// Info is the description of a certificate in lists. None of it is secret.
type Info struct {
	ID          string    `json:"id" doc:"organisation, then the SHA-256 of the certificate"`
	Fingerprint string    `json:"fingerprint" doc:"SHA-256 of the certificate"`
	HasPrivate  bool      `json:"has_private" doc:"the private key is stored too"`
	IsCA        bool      `json:"is_ca"`
	MayServe    bool      `json:"may_serve" doc:"gateways show it to clients: its private key is stored too, and it is neither of an authority (CA:TRUE) nor for clients alone"`
	Subject     string    `json:"subject"`
	Issuer      string    `json:"issuer"`
	DNSNames    []string  `json:"dns_names"`
	NotBefore   time.Time `json:"not_before"`
	NotAfter    time.Time `json:"not_after"`
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
