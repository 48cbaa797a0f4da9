package certs

import (
	"fmt"
	"net"
	"slices"
	"strings"
)

// What one organisation may have of certificates: all gateways hold all of them in
// memory, and are given all at once. Eight organisations with as much as they may
// have are as much as a gateway takes.
const (
	MaxPerOrg      = 5_000
	MaxBytesPerOrg = 32 << 20 // in PEM form, private keys as they are stored
)

// TakenError says that a server's name is another organisation's, without saying
// whose.
type TakenError struct{ Name string }

// Error names what is taken.
func (e *TakenError) Error() string {
	return fmt.Sprintf("is for %q, which a certificate of another organisation is shown for; whoever comes first has a name until that certificate is deleted", e.Name)
}

// FullError says that an organisation has as many certificates as it may, or as
// large ones.
type FullError struct{ Most string }

// Error says how many there may be.
func (e *FullError) Error() string {
	return "is one too many: an organisation has at most " + e.Most + "; delete those that have expired"
}

// Room tells why there is no room for one more certificate of a size, in bytes,
// beside count others that have so many bytes; nil when there is.
func Room(count int, bytes int64, size int) error {
	switch {
	case count >= MaxPerOrg:
		return &FullError{Most: fmt.Sprintf("%d certificates", MaxPerOrg)}
	case bytes+int64(size) > MaxBytesPerOrg:
		return &FullError{Most: fmt.Sprintf("%d MiB of certificates", MaxBytesPerOrg>>20)}
	}
	return nil
}

// Claims returns what keeps the certificates of other organisations from the names
// of this one: each name itself, and for one that a wildcard would cover also a "?"
// in the place of its first label. There are none when no server shows it. keyed:
// its private key is known, here or where it is kept.
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

// Rivals returns the claims of other organisations that keep the certificate from
// its names.
func (c *Certificate) Rivals() []string {
	rivals := []string{}
	for _, name := range c.served(c.Key != nil) {
		rivals = append(rivals, rivalsOf(name)...)
	}
	slices.Sort(rivals)
	return slices.Compact(rivals)
}

// Taken returns *TakenError for the first name of the certificate that a claim of
// another organisation keeps it from; nil when there is none.
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

// served returns the names that servers show the certificate for.
func (c *Certificate) served(keyed bool) []string {
	if !keyed || !c.forServers() {
		return nil
	}
	return c.Names()
}

// rivalsOf returns the claims that keep others from a name: a wildcard and a name
// that it covers are the same to a client who asks for that.
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

// parentOf returns a name from its first dot on; "" for addresses, and for names
// of one label.
func parentOf(name string) string {
	dot := strings.IndexByte(name, '.')
	if dot <= 0 || net.ParseIP(name) != nil {
		return ""
	}
	return name[dot:]
}
