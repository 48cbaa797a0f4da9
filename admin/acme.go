package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/certs"
)

func (s *Server) acmeRoutes() []rest.Route {
	const path = "/api/gateway/acme/{name}"
	return []rest.Route{
		{
			Method: "GET", Path: "/api/acme", Summary: "List the certificates that gateways obtain by ACME, and attempts that failed", Tag: "Certificates", Role: rest.Viewer,
			Reply: acmeList{}, Handle: s.listACME,
		},
		{
			Method: "DELETE", Path: "/api/acme/domains/{domain}", Tag: "Certificates", Role: rest.Admin,
			Summary: "Forget the certificate and the failures of a domain; gateways that are to obtain it try at once, and keep a certificate that they serve",
			Reply:   rest.Envelope{}, Wrong: []int{404}, Handle: s.forgetACME,
		},
		{
			Method: "GET", Path: path, Summary: "Get an account, certificate or challenge of ACME, for a gateway", Tag: "Gateways", Role: rest.Gateway,
			Reply: certs.ACMEEntry{}, Secret: true, Wrong: []int{400, 404}, Handle: s.getACME,
		},
		{
			Method: "PUT", Path: path, Summary: "Store an account, certificate or challenge of ACME", Tag: "Gateways", Role: rest.Gateway,
			Body: certs.ACMEEntry{}, Reply: rest.Envelope{}, Wrong: []int{400, 409, 413, 415}, Handle: s.putACME,
		},
		{
			Method: "DELETE", Path: path, Summary: "Delete an account, certificate or challenge of ACME", Tag: "Gateways", Role: rest.Gateway,
			Reply: rest.Envelope{}, Wrong: []int{400}, Handle: s.deleteACME,
		},
		{
			Method: "POST", Path: path + "/lease", Summary: "Ask to be the only gateway that orders a certificate", Tag: "Gateways", Role: rest.Gateway,
			Body: certs.ACMELease{}, Reply: certs.ACMELeased{}, Wrong: []int{400, 413, 415}, Handle: s.takeACMELease,
		},
		{
			Method: "PUT", Path: path + "/lease", Summary: "End an attempt to obtain a certificate", Tag: "Gateways", Role: rest.Gateway,
			Body: certs.ACMELease{}, Reply: rest.Envelope{}, Wrong: []int{400, 404, 413, 415}, Handle: s.settleACMELease,
		},
	}
}

// Bounds of what gateways may store.
const (
	maxACMELease = 7 * 24 * 3600 // seconds
	maxACMEError = 1000          // bytes
)

// acmeNames is the form of the names of entries.
var acmeNames = regexp.MustCompile(`^[0-9a-f]{16}\.(account|certificate|http|alpn)(\.[A-Za-z0-9._-]{1,253})?$`)

func acmeName(c *rest.Call) (string, error) {
	name := c.Param("name")
	if !acmeNames.MatchString(name) {
		return "", rest.BadRequest("name: want 16 hexadecimal digits, then .account, or .certificate, .http or .alpn with a dot and a name")
	}
	return name, nil
}

// acmePlace is the additional data that the value of an entry is sealed with.
func acmePlace(name string) []byte { return []byte("acme_entries " + name + " sealed_value") }

func (s *Server) openACME(name string, sealed []byte) ([]byte, error) {
	value, err := s.deps.MasterKey.Open(sealed, acmePlace(name))
	if err != nil {
		return nil, fmt.Errorf("admin.master_key: the ACME entry %s cannot be opened; set the key that it was sealed with: %w", name, err)
	}
	return value, nil
}

func (s *Server) getACME(ctx context.Context, c *rest.Call) (any, error) {
	name, err := acmeName(c)
	if err != nil {
		return nil, err
	}
	sealed, err := s.deps.Store.ACMEEntry(ctx, name)
	if err != nil {
		return nil, rest.Missing(err, "There is no such entry")
	}
	value, err := s.openACME(name, sealed)
	if err != nil {
		return nil, err
	}
	return certs.ACMEEntry{Value: value}, nil
}

func (s *Server) putACME(ctx context.Context, c *rest.Call) (any, error) {
	name, err := acmeName(c)
	if err != nil {
		return nil, err
	}
	var entry certs.ACMEEntry
	if err := c.Decode(&entry); err != nil {
		return nil, err
	}
	switch {
	case len(entry.Value) == 0 || len(entry.Value) > certs.MaxACMEValue:
		return nil, rest.BadRequest(fmt.Sprintf("value: has %d bytes; want 1 to %d", len(entry.Value), certs.MaxACMEValue))
	case entry.ExpiresIn < 0 || entry.ExpiresIn > 10*365*24*3600:
		return nil, rest.BadRequest("expires_in: want seconds, at most those of ten years; 0 for never")
	}
	sealed, err := s.deps.MasterKey.Seal(entry.Value, acmePlace(name))
	if err != nil {
		return nil, err
	}
	err = s.deps.Store.PutACMEEntry(ctx, name, sealed, entry.ExpiresIn)
	if errors.Is(err, store.ErrFull) {
		return nil, rest.Refuse(fasthttp.StatusConflict, "The entry cannot be stored: "+err.Error())
	}
	if err != nil {
		return nil, err
	}
	return rest.Done("Entry stored", nil), nil
}

func (s *Server) deleteACME(ctx context.Context, c *rest.Call) (any, error) {
	name, err := acmeName(c)
	if err != nil {
		return nil, err
	}
	if err := s.deps.Store.DeleteACMEEntry(ctx, name); err != nil {
		return nil, err
	}
	return rest.Done("Entry deleted", nil), nil
}

// acmeLease returns the name of a lease and the body of a call about it.
func acmeLease(c *rest.Call) (name string, l certs.ACMELease, err error) {
	if name, err = acmeName(c); err != nil {
		return "", l, err
	}
	if err := c.Decode(&l); err != nil {
		return "", l, err
	}
	switch {
	case l.Holder == "" || len(l.Holder) > 128:
		err = rest.BadRequest("holder: want 1 to 128 bytes")
	case l.Seconds < 0 || l.Seconds > maxACMELease:
		err = rest.BadRequest(fmt.Sprintf("seconds: want 0 to %d", maxACMELease))
	case l.Failures < 0:
		err = rest.BadRequest("failures: want 0 or more")
	case len(l.Error) > maxACMEError:
		err = rest.BadRequest(fmt.Sprintf("error: want at most %d bytes", maxACMEError))
	}
	return name, l, err
}

func (s *Server) takeACMELease(ctx context.Context, c *rest.Call) (any, error) {
	name, l, err := acmeLease(c)
	if err != nil {
		return nil, err
	}
	failures, granted, err := s.deps.Store.TakeACMELease(ctx, name, l.Holder, l.Seconds)
	if err != nil {
		return nil, err
	}
	return certs.ACMELeased{Granted: granted, Failures: failures}, nil
}

func (s *Server) settleACMELease(ctx context.Context, c *rest.Call) (any, error) {
	name, l, err := acmeLease(c)
	if err != nil {
		return nil, err
	}
	err = s.deps.Store.SettleACMELease(ctx, store.ACMEOutcome{Name: name, Holder: l.Holder, Seconds: l.Seconds, Failures: l.Failures, Error: l.Error})
	if err != nil {
		return nil, rest.Missing(err, "The lease has passed to another attempt")
	}
	return rest.Done("Attempt ended", nil), nil
}

// acmeList is what gateways obtain by ACME.
type acmeList struct {
	// Certificates by domain.
	Certificates []acmeCertificate `json:"certificates"`
}

// acmeCertificate is a certificate that gateways obtain by ACME, or try to.
type acmeCertificate struct {
	// Host that the certificate is for.
	Domain string `json:"domain"`
	// Time from which it is valid; left out: there is no certificate yet.
	NotBefore *time.Time `json:"not_before,omitempty"`
	// Time until which it is valid; left out: there is no certificate yet.
	NotAfter *time.Time `json:"not_after,omitempty"`
	// Attempts to obtain it or its successor that failed one after another.
	Failures int32 `json:"failures"`
	// Reason for which the last attempt failed; left out: it did not.
	Error string `json:"error,omitempty"`
	// Time at which gateways try again after a failure; left out: there was none.
	NextTry *time.Time `json:"next_try,omitempty"`
}

func (s *Server) listACME(ctx context.Context, _ *rest.Call) (any, error) {
	rows, err := s.deps.Store.ACMECertificates(ctx)
	if err != nil {
		return nil, err
	}
	failures, err := s.deps.Store.ACMEFailures(ctx)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]*acmeCertificate)
	for _, row := range rows {
		one := &acmeCertificate{Domain: acmeDomain(row.Name)}
		byName[row.Name] = one
		value, err := s.openACME(row.Name, row.SealedValue)
		if err != nil {
			return nil, err
		}
		if c, err := certs.Parse(value); err == nil {
			one.NotBefore, one.NotAfter = &c.Leaf.NotBefore, &c.Leaf.NotAfter
		}
	}
	for _, row := range failures {
		one := byName[row.Name]
		if one == nil {
			one = &acmeCertificate{Domain: acmeDomain(row.Name)}
			byName[row.Name] = one
		}
		one.Failures, one.Error, one.NextTry = row.Failures, row.Error, &row.Until
	}
	list := acmeList{Certificates: make([]acmeCertificate, 0, len(byName))}
	for _, one := range byName {
		list.Certificates = append(list.Certificates, *one)
	}
	slices.SortFunc(list.Certificates, func(a, b acmeCertificate) int { return cmp.Compare(a.Domain, b.Domain) })
	return list, nil
}

func (s *Server) forgetACME(ctx context.Context, c *rest.Call) (any, error) {
	switch may, err := s.actsForAll(ctx, c); {
	case err != nil:
		return nil, err
	case !may:
		return nil, rest.Refuse(fasthttp.StatusForbidden, "access denied: only admins of the first organisation forget certificates of ACME")
	}
	if err := s.deps.Store.ForgetACME(ctx, c.Param("domain")); err != nil {
		return nil, rest.Missing(err, "There is neither a certificate nor a failure of this domain")
	}
	return rest.Done("Domain forgotten", nil), nil
}

// acmeDomain returns the domain in the name of a certificate's entry.
func acmeDomain(name string) string {
	_, domain, _ := strings.Cut(name, ".certificate.")
	return domain
}
