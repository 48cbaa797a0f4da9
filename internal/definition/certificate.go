package definition

import (
	"fmt"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// A certificate is named by an id, which is the organisation followed by the SHA-256
// of the certificate, or by the path of a PEM file.

// CertificateSumLength is the number of hexadecimal digits of a SHA-256.
const CertificateSumLength = 64

// SplitCertificateID splits the id of a certificate. It returns false for anything
// else, such as the path of a file.
func SplitCertificateID(id string) (org, sum string, ok bool) {
	at := len(id) - CertificateSumLength
	if at < 0 || strings.ContainsAny(id[:at], `/\`) || strings.Trim(id[at:], "0123456789abcdef") != "" {
		return "", "", false
	}
	return id[:at], id[at:], true
}

// NamesCertificate reports whether id names the certificate with a sum, in any
// organisation. It does not allocate.
func NamesCertificate(id string, sum []byte) bool {
	at := len(id) - CertificateSumLength
	return at >= 0 && id[at:] == string(sum)
}

// CheckCertificateID returns what is wrong with the id of a certificate, or "".
func CheckCertificateID(id string) string {
	if _, _, ok := SplitCertificateID(id); !ok {
		return fmt.Sprintf("is %.100q; want the id of a certificate: organisation, then the 64 lower-case hexadecimal digits of its SHA-256", id)
	}
	return ""
}

// GatewayFiles lists what a definition of an admin must not take from gateways: client
// certificates that are files there, as those who change definitions may not be allowed to
// know such files, and secrets that the admin has to know as well.
func (a *API) GatewayFiles() []Problem {
	var p Problems
	for i, entry := range a.ClientCertificates {
		if _, _, ok := SplitCertificateID(entry); !ok {
			p.addf(object.Item("client_certificates", i), "names a file of the gateway, which is allowed on gateways without an admin only; store the certificate (POST /api/certs) and give its id")
		}
	}
	a.unreadableSecrets(&p)
	return p
}

// checkCertificate returns what is wrong with the id of a certificate or the path of
// a PEM file, or "".
func checkCertificate(entry string) string {
	if strings.ContainsAny(entry, "/.") || CheckCertificateID(entry) == "" {
		return ""
	}
	return fmt.Sprintf("is %.100q; want the id of a certificate (organisation, then the 64 lower-case hexadecimal digits of its SHA-256) or the path of a PEM file", entry)
}
