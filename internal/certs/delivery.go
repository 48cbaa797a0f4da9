package certs

import "fmt"

// Delivery is all certificates that gateways need, as the admin sends them.
type Delivery struct {
	Certificates []Delivered `json:"certificates"`

	// KeysHeld is true if private keys were left out because the connection is not
	// encrypted.
	KeysHeld int `json:"keys_held,omitempty"`
}

// Delivered is one certificate of a Delivery.
type Delivered struct {
	ID  string `json:"id"`
	PEM string `json:"pem"`           // with the chain
	Key string `json:"key,omitempty"` // private, in PEM form
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
