package certs

import (
	"fmt"
	"net"
	"slices"
	"strings"
)

// Bounds of the certificates of one organisation: every gateway has all of them in
// memory, and receives them in one response. A gateway has capacity for eight
// organisations at these bounds.
const (
	MaxPerOrg      = 5_000
	MaxBytesPerOrg = 32 << 20 // in PEM form, private keys as they are stored
)

// TakenError means that a certificate of another organisation has the server name,
// without naming that organisation.
type TakenError struct{ Name string }

// Error names the server name.
func (e *TakenError) Error() string {
	return fmt.Sprintf("is for %q, which a certificate of another organisation already serves; a name belongs to the organisation that stored the first certificate for it, until that certificate is deleted", e.Name)
}

// FullError means that an organisation has reached the number or the size of
// certificates that it may have.
type FullError struct{ Most string }

// Error names the bound.
func (e *FullError) Error() string {
	return "is one too many: an organisation has at most " + e.Most + "; delete those that have expired"
}

// CheckCapacity returns an error if one more certificate of a size, in bytes, cannot be stored
// beside count others with a total of bytes.
func CheckCapacity(count int, bytes int64, size int) error {
	switch {
	case count >= MaxPerOrg:
		return &FullError{Most: fmt.Sprintf("%d certificates", MaxPerOrg)}
	case bytes+int64(size) > MaxBytesPerOrg:
		return &FullError{Most: fmt.Sprintf("%d MiB of certificates", MaxBytesPerOrg>>20)}
	}
	return nil
}

// Claims returns the names that certificates of other organisations cannot have
// because of this one: each name itself, and for one that a wildcard would cover also
// the name with "?" as its first label. There are none if no server uses the
// certificate. keyed: its private key is known, here or in the store.
func (c *Certificate) Claims(keyed bool) []string {
	claims := []string{}
	for _, name := range c.served(keyed) {
		claims = append(claims, name)
		if parent := parentOf(name); parent != "" && name[0] != '*' {
			claims = append(claims, "?"+parent)
		}
	}
	slices.Sort(claims)
	return slices.Compact(claims)
}

// Rivals returns the claims of other organisations that conflict with the names of the
// certificate.
func (c *Certificate) Rivals() []string {
	rivals := []string{}
	for _, name := range c.served(c.Key != nil) {
		rivals = append(rivals, rivalsOf(name)...)
	}
	slices.Sort(rivals)
	return slices.Compact(rivals)
}

// Taken returns a *TakenError for the first name of the certificate that conflicts
// with a claim of another organisation, or nil.
func (c *Certificate) Taken(claims []string) error {
	for _, name := range c.served(c.Key != nil) {
		for _, rival := range rivalsOf(name) {
			if slices.Contains(claims, rival) {
				return &TakenError{Name: name}
			}
		}
	}
	return nil
}

// served returns the names for which servers use the certificate.
func (c *Certificate) served(keyed bool) []string {
	if !keyed || !c.forServers() {
		return nil
	}
	return c.Names()
}

// rivalsOf returns the claims that conflict with a name: to a client, a wildcard and a
// name that it covers are the same.
func rivalsOf(name string) []string {
	parent := parentOf(name)
	switch {
	case parent == "":
		return []string{name}
	case name[0] == '*':
		return []string{name, "?" + parent}
	}
	return []string{name, "*" + parent}
}

// parentOf returns a name from its first dot on; "" for addresses and for names of one
// label.
func parentOf(name string) string {
	dot := strings.IndexByte(name, '.')
	if dot <= 0 || net.ParseIP(name) != nil {
		return ""
	}
	return name[dot:]
}
