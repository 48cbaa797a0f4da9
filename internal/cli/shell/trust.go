package shell

import (
	"cmp"
	"crypto/tls"
	"net/http"
	"path/filepath"

	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/spf13/cobra"
)

// Trust is what a command trusts in calls over TLS, and how it authenticates.
type Trust struct {
	CA   string `json:"ca,omitempty"`          // PEM file of authorities; "": the system's
	Cert string `json:"client_cert,omitempty"` // PEM file of a client certificate; "": none
	Key  string `json:"client_key,omitempty"`  // PEM file of its private key; "": it is in Cert

	name string // that the server's certificate must have; "": the host of the URL

	caFrom, certFrom, keyFrom string // names of the places that the members are from; "": their flags
}

// Flags adds the flags that a trust is given by.
func (t *Trust) Flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.CA, "ca", "", "PEM `FILE` of the authorities that are trusted, in place of the system's (SLUICE_CA)")
	cmd.Flags().StringVar(&t.Cert, "client-cert", "", "PEM `FILE` of the client certificate to authenticate with (SLUICE_CLIENT_CERT)")
	cmd.Flags().StringVar(&t.Key, "client-key", "", "PEM `FILE` of its private key, if it is not in that of --client-cert (SLUICE_CLIENT_KEY)")
}

// Trusted completes what flags say from the environment.
func (s *Shell) Trusted(t *Trust) {
	complete(&t.CA, &t.caFrom, s.Variable("SLUICE_CA"), "SLUICE_CA")
	complete(&t.Cert, &t.certFrom, s.Variable("SLUICE_CLIENT_CERT"), "SLUICE_CLIENT_CERT")
	complete(&t.Key, &t.keyFrom, s.Variable("SLUICE_CLIENT_KEY"), "SLUICE_CLIENT_KEY")
}

// complete sets a member that has no value, and the name of the place that it is from.
func complete(to, toFrom *string, value, from string) {
	if *to == "" && value != "" {
		*to, *toFrom = value, from
	}
}

// ofProfile completes what flags and the environment say from a profile. A private key
// belongs to a certificate: that of the profile is not used with another one.
func (t *Trust) ofProfile(p *Profile) {
	complete(&t.CA, &t.caFrom, p.CA, "ca of profile "+p.name)
	if t.Cert == "" {
		complete(&t.Key, &t.keyFrom, p.Trust.Key, "client_key of profile "+p.name)
		complete(&t.Cert, &t.certFrom, p.Cert, "client_cert of profile "+p.name)
	}
}

// Absolute returns the trust with absolute paths, which hold in other directories.
func (t Trust) Absolute() (Trust, error) {
	for _, path := range []*string{&t.CA, &t.Cert, &t.Key} {
		if *path == "" {
			continue
		}
		full, err := filepath.Abs(*path)
		if err != nil {
			return Trust{}, err
		}
		*path = full
	}
	return t, nil
}

// OfThisMachine expects the certificate of a listener of this machine, which is called by
// another name than those in it, and trusts it unless authorities were given.
func (t *Trust) OfThisMachine(conf *config.ListenerTLS) {
	if !conf.On() {
		return
	}
	c, err := certs.Pair{Cert: conf.Cert, Key: conf.Key}.Read()
	if err != nil {
		return // the call says that it is not trusted
	}
	t.CA = cmp.Or(t.CA, conf.Cert)
	if names := c.Names(); len(names) > 0 {
		t.name = names[0]
	}
}

// Trust has the client trust authorities in place of the system's, and authenticate by a
// certificate. Errors name the member of the trust and the place that it is from.
func (c *Client) Trust(t Trust) error {
	if _, err := t.Own(); err != nil {
		return err
	}
	return InFlag(cmp.Or(t.caFrom, "--ca"), c.callBy(certs.CallerOptions{CA: t.CA, Pair: certs.Pair{Cert: t.Cert, Key: t.Key}, Name: t.name}))
}

// Own reads the client certificate; it is nil if there is none.
func (t *Trust) Own() (*tls.Certificate, error) {
	switch {
	case t.Cert == "" && t.Key == "":
		return nil, nil
	case t.Cert == "":
		return nil, InFlag(cmp.Or(t.keyFrom, "--client-key"), errNoCert)
	}
	own, err := certs.Pair{Cert: t.Cert, Key: t.Key}.Read()
	if err != nil {
		return nil, InFlag(t.pairFrom(), err)
	}
	return own.TLS(), nil
}

// pairFrom names the places that the client certificate and its private key are from.
func (t *Trust) pairFrom() string {
	from := cmp.Or(t.certFrom, "--client-cert")
	if t.Key != "" {
		from += ", " + cmp.Or(t.keyFrom, "--client-key")
	}
	return from
}

func (c *Client) callBy(o certs.CallerOptions) error {
	if o.IsZero() {
		return nil
	}
	caller, err := certs.NewCaller(o)
	if err != nil {
		return err
	}
	c.http.Transport = caller.Transport()
	return nil
}

// Transport returns what makes the calls of the client.
func (c *Client) Transport() http.RoundTripper {
	if c.http.Transport == nil {
		return http.DefaultTransport
	}
	return c.http.Transport
}
