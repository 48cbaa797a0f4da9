package certs

import "fmt"

// Delivery is every certificate that gateways need, as the admin hands them out.
type Delivery struct {
	Certificates []Delivered `json:"certificates"`

	// KeysHeld says that there are private keys which are left out, because they
	// would have come over a connection that others can read.
	KeysHeld int `json:"keys_held,omitempty"`
}

// Delivered is one certificate of a Delivery.
type Delivered struct {
	ID  string `json:"id"`
	PEM string `json:"pem"`           // with the chain
	Key string `json:"key,omitempty"` // private, in PEM form
}

// Parse reads the certificate, whose id must fit.
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
