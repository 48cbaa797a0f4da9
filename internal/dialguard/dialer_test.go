package dialguard

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

func TestTheListOfAllowedAddressesIsRead(t *testing.T) {
	a, err := ParseAllowed([]string{"10.0.0.0/8", "127.0.0.1", "::1", "Broker.Internal", "fd00::/8"})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{
		"10.255.0.1": true, "::ffff:10.0.0.1": true, "127.0.0.1": true, "::1": true, "broker.internal.": true, "fd12::1": true,
		"11.0.0.1": false, "127.0.0.2": false, "internal": false, "other.broker.internal": false, "": false,
	} {
		if got := a.Host(host); got != want {
			t.Errorf("%s: %v, want %v", host, got, want)
		}
	}
	for _, bad := range []string{"", "10.0.0.0/33", "10.0.0.256", "10.1", "a b", "http://host", "host:80", "*.internal", "::ffff:10.0.0.0/104", ".", "a..b"} {
		if _, err := ParseAllowed([]string{bad}); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// names is a server of DNS that answers the n-th question about a name with the n-th
// address, and the last one from then on.
func names(t *testing.T, answers ...string) (resolver *net.Resolver, asked *atomic.Int64) {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	asked = new(atomic.Int64)
	go func() {
		buffer := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(buffer)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buffer[:n]) != nil {
				continue
			}
			m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				at := min(int(asked.Add(1)), len(answers)) - 1
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET},
					Body:   &dnsmessage.AResource{A: netip.MustParseAddr(answers[at]).As4()},
				}}
			}
			if packed, err := m.Pack(); err == nil {
				_, _ = server.WriteTo(packed, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", server.LocalAddr().String())
	}}, asked
}

// A listener that must not be called, and its port.
func trap(t *testing.T) (port string, called *atomic.Bool) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	called = new(atomic.Bool)
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			called.Store(true)
			conn.Close()
		}
	}()
	_, port, _ = net.SplitHostPort(ln.Addr().String())
	return port, called
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestNamesThatLeadToPrivateAddressesAreNotDialled(t *testing.T) {
	port, called := trap(t)
	resolver, _ := names(t, "127.0.0.1")
	d := &Dialer{Setting: "streaming.allow_addresses", Resolver: resolver}
	_, err := d.DialContext(within(t), "tcp", "broker.test:"+port)
	want := "dial broker.test:" + port + ": address 127.0.0.1 is loopback; add it to streaming.allow_addresses"
	if err == nil || err.Error() != want || !errors.Is(err, ErrPrivate) {
		t.Errorf("%v, want %s", err, want)
	}
	if called.Load() {
		t.Error("the address was dialled")
	}
}

// A name that leads to a public address when it is looked at, and elsewhere when it is
// dialled.
func TestAnAnswerThatChangesDoesNotGetPast(t *testing.T) {
	port, called := trap(t)
	resolver, asked := names(t, "93.184.216.34", "127.0.0.1")
	found, err := resolver.LookupNetIP(within(t), "ip4", "rebind.test.")
	if err != nil || (Policy{}).Check(netip.AddrPortFrom(found[0], 80).String()) != nil {
		t.Fatalf("at first %v, %v", found, err)
	}
	d := &Dialer{Setting: "s", Resolver: resolver}
	if _, err := d.DialContext(within(t), "tcp", "rebind.test.:"+port); !errors.Is(err, ErrPrivate) {
		t.Errorf("dialled: %v", err)
	}
	if called.Load() || asked.Load() < 2 {
		t.Errorf("dialled: %v, questions: %d", called.Load(), asked.Load())
	}
}

func TestAllowedAddressesAreDialled(t *testing.T) {
	port, _ := trap(t)
	resolver, _ := names(t, "127.0.0.1")
	for _, list := range [][]string{{"127.0.0.0/8"}, {"broker.test"}} {
		allowed, err := ParseAllowed(list)
		if err != nil {
			t.Fatal(err)
		}
		d := &Dialer{Allowed: allowed, Setting: "s", Resolver: resolver}
		conn, err := d.DialContext(within(t), "tcp", "broker.test:"+port)
		if err != nil {
			t.Errorf("%q: %v", list, err)
			continue
		}
		conn.Close()
	}
}

func TestMetadataServicesAreNotDialledEvenIfAllowed(t *testing.T) {
	allowed, err := ParseAllowed([]string{"0.0.0.0/0", "metadata.test"})
	if err != nil {
		t.Fatal(err)
	}
	resolver, _ := names(t, "169.254.169.254")
	d := &Dialer{Allowed: allowed, Setting: "s", Resolver: resolver}
	for _, host := range []string{"metadata.test", "169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]"} {
		if _, err := d.DialContext(within(t), "tcp", host+":80"); !errors.Is(err, ErrNever) || !strings.Contains(err.Error(), "never called") {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestWhatCannotBeDialledIsNamed(t *testing.T) {
	d := &Dialer{Setting: "s"}
	for address, want := range map[string]string{
		"nothing":     "dial nothing: ",
		"10.0.0.7:80": "dial 10.0.0.7:80: address 10.0.0.7 is private; add it to s",
		"0.0.0.0:80":  "dial 0.0.0.0:80: address 0.0.0.0 is not public; add it to s",
	} {
		if _, err := d.DialContext(within(t), "tcp", address); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", address, err, want)
		}
	}
	if _, err := d.DialContext(within(t), "unix", "/run/x"); err == nil {
		t.Error("a socket was dialled")
	}
}

func FuzzDialer(f *testing.F) {
	for _, text := range []string{"127.0.0.1:1", "[::1]:1", "[::ffff:10.0.0.1]:1", "[2001:0:a00:1::1]:1", "93.184.216.34:1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, address string) {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return
		}
		d := &Dialer{Setting: "s"}
		if d.control(Policy{}, address, address) == nil && !isPublic(ap.Addr().Unmap().WithZone("")) {
			t.Errorf("%s is allowed", address)
		}
	})
}
