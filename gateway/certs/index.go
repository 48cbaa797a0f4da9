package certs

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/certs"
)

// index finds certificates by server name. It does not change.
type index struct {
	byName   map[string][]*shown // exact names, and wildcards with their star
	fallback *shown              // for clients without a server name, or with an unknown one; nil: none
	all      []*shown
}

// shown is a certificate that the server may use.
type shown struct {
	*certs.Certificate
	tls  *tls.Certificate
	from int // the lowest takes precedence
}

// Where certificates come from.
const (
	fromFile = iota
	fromStore
	fromACME
)

// newIndex indexes the certificates of files, of a store, and those issued by ACME. The first
// file is the fallback.
func newIndex(files []*certs.Certificate, stored, issued map[string]*certs.Certificate) *index {
	ix := &index{byName: make(map[string][]*shown)}
	seen := make(map[string]bool)
	for _, c := range files {
		ix.add(c, fromFile, seen)
	}
	for _, id := range slices.Sorted(maps.Keys(stored)) {
		if c := stored[id]; c.MayServe() {
			ix.add(c, fromStore, seen)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(issued)) {
		ix.add(issued[name], fromACME, seen)
	}
	for _, list := range ix.byName {
		slices.SortStableFunc(list, better)
	}
	if len(ix.all) > 0 {
		ix.fallback = ix.all[0]
	}
	return ix
}

func (ix *index) add(c *certs.Certificate, from int, seen map[string]bool) {
	if seen[c.Sum] {
		return
	}
	seen[c.Sum] = true
	s := &shown{Certificate: c, tls: c.TLS(), from: from}
	ix.all = append(ix.all, s)
	for _, name := range c.Names() {
		ix.byName[name] = append(ix.byName[name], s)
	}
}

// better orders certificates by their source, and then by the latest expiry.
func better(a, b *shown) int {
	return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.Leaf.NotAfter.Unix(), a.Leaf.NotAfter.Unix()))
}

// named returns the certificates for a name in order of preference: those of the name
// itself, or of the wildcard that covers it.
func (ix *index) named(name string) []*shown {
	if list := ix.byName[name]; len(list) > 0 {
		return list
	}
	if dot := strings.IndexByte(name, '.'); dot > 0 {
		return ix.byName["*"+name[dot:]]
	}
	return nil
}

// certificate returns the certificate for a handshake: one of the name that the client
// asks for, of a type that it supports.
func (ix *index) certificate(hello *tls.ClientHelloInfo, now time.Time) (*tls.Certificate, error) {
	name := normalName(hello.ServerName)
	if name == "" && hello.Conn != nil { // TLS has no server name for addresses
		if local, ok := hello.Conn.LocalAddr().(*net.TCPAddr); ok {
			name = local.IP.String()
		}
	}
	list := ix.named(name)
	for _, c := range list {
		if !now.Before(c.Leaf.NotBefore) && hello.SupportsCertificate(c.tls) == nil {
			return c.tls, nil
		}
	}
	switch {
	case len(list) > 0:
		return list[0].tls, nil
	case ix.fallback != nil:
		return ix.fallback.tls, nil
	}
	return nil, fmt.Errorf("there is no certificate for the name %.100q", name)
}

// normalName returns the form of a server name in the index.
func normalName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }
