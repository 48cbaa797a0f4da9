package match

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// maxHost is the length of the longest host: names have at most 253 bytes, and one dot
// may follow.
const maxHost = 254

// normalHost returns host without its port and without the dot that may end a
// name, in lower case, in buf. The result is empty for what cannot be a host.
func normalHost(buf *[maxHost]byte, host []byte) []byte {
	name := withoutPort(host)
	if len(name) > len(buf) {
		return nil
	}
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		buf[i] = c
	}
	return bytes.TrimSuffix(buf[:len(name)], []byte{'.'})
}

func withoutPort(host []byte) []byte {
	if len(host) > 0 && host[0] == '[' {
		return host[:bytes.IndexByte(host, ']')+1]
	}
	if before, _, ok := bytes.Cut(host, []byte{':'}); ok {
		return before
	}
	return host
}

// normalDomain checks the domain of an entry and returns what normalHost makes
// of the hosts that it is for; "" stays "".
func normalDomain(domain string) (string, error) {
	if domain == "" {
		return "", nil
	}
	if strings.Contains(domain, "/") {
		return "", errors.New("must be a host name alone, without scheme or path")
	}
	if !strings.HasPrefix(domain, "[") && strings.Contains(domain, ":") {
		return "", errors.New("must be a host name without a port; an IPv6 address stands in brackets")
	}
	for _, c := range []byte(domain) {
		if !isHostByte(c) {
			return "", fmt.Errorf("must not hold %q; international names are written in their xn-- form", c)
		}
	}
	var buf [maxHost]byte
	normal := normalHost(&buf, []byte(domain))
	if len(normal) == 0 || len(normal) < len(domain)-1 {
		return "", errors.New("is not a host name of at most 253 bytes or an IPv6 address in brackets")
	}
	return string(normal), nil
}

func isHostByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._[]:", c) >= 0
}
