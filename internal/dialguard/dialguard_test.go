package dialguard

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

func TestAddressesAreJudged(t *testing.T) {
	for address, want := range map[string]error{
		"93.184.216.34:443":                   nil,
		"[2606:2800:220:1::1]:443":            nil,
		"example.com:443":                     nil, // judged when its addresses are known
		"169.254.169.254:80":                  ErrNever,
		"169.254.0.1:80":                      ErrNever,
		"[::ffff:169.254.169.254]:80":         ErrNever,
		"[fe80::1%eth0]:80":                   ErrNever,
		"[fd00:ec2::254]:80":                  ErrNever,
		"100.100.100.200:80":                  ErrNever,
		"168.63.129.16:80":                    ErrNever,
		"[64:ff9b::a9fe:a9fe]:80":             ErrNever,
		"[2002:a9fe:a9fe::1]:80":              ErrNever,
		"[::169.254.169.254]:80":              ErrNever,
		"[::ffff:0:169.254.169.254]:80":       ErrNever,
		"[::10.0.0.1]:80":                     ErrPrivate,
		"[::ffff:0:10.0.0.1]:80":              ErrPrivate,
		"[64:ff9b:1::a00:1]:80":               ErrPrivate,
		"127.0.0.1:80":                        ErrPrivate,
		"127.9.9.9:80":                        ErrPrivate,
		"[::1]:80":                            ErrPrivate,
		"0.0.0.0:80":                          ErrPrivate,
		"[::]:80":                             ErrPrivate,
		"10.1.2.3:80":                         ErrPrivate,
		"172.16.0.1:80":                       ErrPrivate,
		"192.168.1.1:80":                      ErrPrivate,
		"100.64.0.1:80":                       ErrPrivate,
		"[fd12:3456::1]:80":                   ErrPrivate,
		"[64:ff9b::10.0.0.1]:80":              ErrPrivate,
		"[2002:0a00:0001::1]:80":              ErrPrivate,
		"224.0.0.1:80":                        ErrPrivate,
		"255.255.255.255:80":                  ErrPrivate,
		"[::ffff:192.168.0.1]:80":             ErrPrivate,
		"198.18.0.1:80":                       ErrPrivate,
		"[2001:0:5ef5::a00:1]:80":             ErrPrivate,
		"172.32.0.1:80":                       nil,
		"[64:ff9b::93.184.216.34]:80":         nil,
		"[::ffff:93.184.216.34]:80":           nil,
		"[2606:2800:220:1:248:1893:25c8:1]:1": nil,
	} {
		if err := (Policy{}).Check(address); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("public only: %s: %v, want %v", address, err, want)
		}
		if want == ErrPrivate {
			want = nil
		}
		if err := (Policy{Private: true}).Check(address); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("private as well: %s: %v, want %v", address, err, want)
		}
	}
}

func TestADialerMeetsThePolicyAfterNamesAreResolved(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	for _, c := range []struct {
		policy Policy
		want   string
	}{{Policy{}, "private and loopback"}, {Policy{Private: true}, ""}} {
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
		conn, err := (&net.Dialer{ControlContext: c.policy.Control}).DialContext(ctx, "tcp", "localhost:"+port)
		cancel()
		if err == nil {
			conn.Close()
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.policy, err, c.want)
		}
	}
}
