package certs

import "fmt"

// Delivery is all certificates that gateways need, as the admin sends them.
type Delivery struct {
	// Certificates that gateways need, of all organisations.
	Certificates []Delivered `json:"certificates"`

	// Number of private keys that were left out because the connection is not encrypted.
	KeysHeld int `json:"keys_held,omitempty"`
}

// Delivered is one certificate of a Delivery.
type Delivered struct {
	// Id of the certificate: the organisation, then its SHA-256.
	ID string `json:"id"`
	// Certificate in PEM form, with its chain.
	PEM string `json:"pem"`
	// Private key in PEM form; left out: it is not stored, was not asked for, or was held back. It is
	// secret.
	Key string `json:"key,omitempty"`
}

// Parse reads the certificate, and checks that it has this id.
func (d *Delivered) Parse() (*Certificate, error) {
	c, err := Parse([]byte(d.PEM + "\n" + d.Key))
	if err != nil {
		return nil, fmt.Errorf("certificate %.100q: %w", d.ID, err)
	}
	if _, sum, ok := SplitID(d.ID); !ok || sum != c.Sum {
		return nil, fmt.Errorf("certificate %.100q: is another one, with the SHA-256 %s", d.ID, c.Sum)
	}
	return c, nil
}
