package dialguard

import (
	"net"
	"net/http"
	"time"
)

// Transport returns what calls the addresses that the policy permits, and no
// others, whatever a name comes to. It uses no proxy of the environment, keeps one
// idle connection to each host for a minute, and reads answers as they are.
// timeout bounds connecting and, again, the TLS handshake.
func (p Policy) Transport(timeout time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: timeout, ControlContext: p.Control}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    timeout,
		MaxResponseHeaderBytes: 64 << 10,
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        time.Minute,
		DisableCompression:     true, // an answer is as large as it seems
	}
}
