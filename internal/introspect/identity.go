package introspect

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"

	"github.com/sluicegate/sluice/internal/definition"
)

// SourceOf returns the source of an API's schema: its target, the headers for
// introspection, and the gateway's certificates for it. caFile has the authorities for
// APIs without their own, "" means the system's. Files are read now. The error is *Error.
func SourceOf(api *definition.API, caFile string) (Source, error) {
	from := Source{URL: api.Proxy.TargetURL}
	if api.GraphQL != nil && api.GraphQL.Proxy != nil {
		from.Headers = api.GraphQL.Proxy.AuthHeaders
	}
	target, err := url.Parse(from.URL)
	if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" {
		return Source{}, &Error{Cause: Unusable, Message: "proxy.target_url must begin with http:// or https:// and name a host"}
	}
	if target.Scheme != "https" {
		return from, nil
	}
	if from.TLS, err = identity(api, target, caFile); err != nil {
		return Source{}, &Error{Cause: BadTLS, Message: err.Error(), err: err}
	}
	return from, nil
}

// identity returns the TLS configuration for the target.
func identity(api *definition.API, target *url.URL, caFile string) (*tls.Config, error) {
	var own definition.Transport
	if api.Proxy.Transport != nil {
		own = *api.Proxy.Transport
	}
	conf := &tls.Config{ServerName: target.Hostname(), MinVersion: tls.VersionTLS12, InsecureSkipVerify: own.InsecureSkipVerify}
	if own.ServerName != "" {
		conf.ServerName = own.ServerName
	}
	if own.MinVersion == "1.3" {
		conf.MinVersion = tls.VersionTLS13
	}
	if err := trust(conf, own.CAFile, caFile); err != nil {
		return nil, err
	}
	cert, err := clientCertificate(api, &own, target)
	if cert != nil {
		conf.Certificates = []tls.Certificate{*cert}
	}
	return conf, err
}

// trust reads the authorities: the API's own, or the general ones.
func trust(conf *tls.Config, own, otherwise string) error {
	path, field := own, "proxy.transport.ssl_ca_file"
	if path == "" {
		path, field = otherwise, "upstream.ca_file"
	}
	if path == "" {
		return nil
	}
	pem, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	conf.RootCAs = x509.NewCertPool()
	if !conf.RootCAs.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s: %s holds no certificate in PEM form", field, path)
	}
	return nil
}

// clientCertificate loads the client certificate; nil: none.
func clientCertificate(api *definition.API, own *definition.Transport, target *url.URL) (*tls.Certificate, error) {
	certFile, keyFile, field := own.CertificateFile, own.KeyFile, "proxy.transport.ssl_certificate_file"
	if certFile == "" {
		certFile, field = certificateFor(api.UpstreamCertificates, target)
		keyFile = certFile
	}
	if certFile == "" {
		return nil, nil
	}
	if keyFile == "" {
		return nil, errors.New("proxy.transport.ssl_key_file: is missing beside ssl_certificate_file")
	}
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return &cert, nil
}

// certificateFor selects from upstream_certificates as the gateway does: an entry with a
// port before one without, and both before "*".
func certificateFor(byHost map[string]string, target *url.URL) (file, field string) {
	port := target.Port()
	if port == "" {
		port = "443"
	}
	for _, name := range []string{net.JoinHostPort(target.Hostname(), port), target.Host, target.Hostname(), "*"} {
		if file := byHost[name]; file != "" {
			return file, fmt.Sprintf("upstream_certificates[%q]", name)
		}
	}
	return "", ""
}
