// Package certificate is how definitions and sessions name certificates: by an
// id, which is an organisation and the SHA-256 of the certificate, or by the path
// of a PEM file.
package certificate

import (
	"fmt"
	"strings"
)

// SumLength is how many hexadecimal digits the SHA-256 of a certificate has.
const SumLength = 64

// SplitID takes the id of a certificate apart. It returns false for what is none,
// such as the path of a file.
func SplitID(id string) (org, sum string, ok bool) {
	at := len(id) - SumLength
	if at < 0 || strings.ContainsAny(id[:at], `/\`) || strings.Trim(id[at:], "0123456789abcdef") != "" {
		return "", "", false
	}
	return id[:at], id[at:], true
}

// Names tells whether id names the certificate with a sum, in whatever
// organisation. It does not allocate.
func Names(id string, sum []byte) bool {
	at := len(id) - SumLength
	return at >= 0 && id[at:] == string(sum)
}

// CheckID says what is wrong with the id of a certificate, "" when nothing is.
func CheckID(id string) string {
	if _, _, ok := SplitID(id); !ok {
		return fmt.Sprintf("is %.100q; want the id of a certificate: organisation, then the 64 lower-case hexadecimal digits of its SHA-256", id)
	}
	return ""
}

// Check says what is wrong with the id of a certificate or the path of a PEM
// file, "" when nothing is.
func Check(entry string) string {
	if strings.ContainsAny(entry, "/.") || CheckID(entry) == "" {
		return ""
	}
	return fmt.Sprintf("is %.100q; want the id of a certificate (organisation, then the 64 lower-case hexadecimal digits of its SHA-256) or the path of a PEM file", entry)
}
