package wire

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// Time-outs end when they are configured to, on connections that are new and on those
// that have served requests.
func TestTimeoutsEndWhenConfigured(t *testing.T) {
	conf := testConfig()
	conf.ReadTimeout, conf.WriteTimeout, conf.IdleTimeout = time.Second, time.Second, 3*time.Second
	const partialBody = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 10000\r\n\r\nx"
	for _, c := range []struct {
		name, before, sent string
		want               time.Duration
	}{
		{"nothing", "", "", conf.IdleTimeout},
		{"nothing after a request", getX, "", conf.IdleTimeout},
		{"a part of a head", "", "GET /", conf.ReadTimeout},
		{"a part of a head after a request", getX, "GET /", conf.ReadTimeout},
		{"a part of a body", "", partialBody, conf.ReadTimeout},
		{"a part of a body after a request", getX, partialBody, conf.ReadTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestServer(conf, handle(func(call *Call) {
					if call.Stream != nil {
						_, _ = io.Copy(io.Discard, call.Stream)
					}
					call.Answer.Status = 200
				}))
				client, server := net.Pipe()
				s.admit(server, nil)
				go func() { _, _ = io.Copy(io.Discard, client) }()
				if c.before != "" {
					for range 5 {
						_, _ = io.WriteString(client, c.before)
						time.Sleep(conf.ReadTimeout / 7)
					}
					_, _ = io.WriteString(client, c.before)
					synctest.Wait()
				}
				if c.sent != "" {
					_, _ = io.WriteString(client, c.sent)
				}
				began := time.Now()
				s.gone.Wait()
				if took := time.Since(began); took != c.want {
					t.Errorf("it ended after %s, want %s", took, c.want)
				}
			})
		})
	}
}

// A client that takes no answer has the configured time, and at most a fiftieth more.
func TestTheTimeoutOfWritesIsNotMuchLater(t *testing.T) {
	conf := testConfig()
	conf.ReadTimeout, conf.WriteTimeout, conf.IdleTimeout = time.Second, time.Second, time.Minute
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(conf, handle(func(call *Call) { call.Answer.Status = 200 }))
		client, server := net.Pipe()
		s.admit(server, nil)
		_, _ = io.WriteString(client, getX)
		began := time.Now()
		s.gone.Wait()
		if took := time.Since(began); took < time.Second || took > time.Second+time.Second/50 {
			t.Errorf("it ended after %s", took)
		}
		_ = client.Close()
	})
}
