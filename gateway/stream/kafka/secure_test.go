package kafka

import (
	"context"
	"crypto/tls"
	"net"
	"testing"

	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/testenv"
)

func TestTheCertificateOfABrokerIsCheckedUnlessItIsNotToBe(t *testing.T) {
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{testenv.NewAuthority(t, "unknown").Server("127.0.0.1").TLS}})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).Handshake() // fails where the client refuses the certificate
			conn.Close()
		}
	}()
	for _, skip := range []bool{false, true} {
		conn, err := dialer(&streams.Servers{TLS: true, SkipVerify: skip}, new(net.Dialer).DialContext)(context.Background(), "tcp", ln.Addr().String())
		if err == nil {
			conn.Close()
		}
		if (err == nil) != skip {
			t.Errorf("skip_verify %v: %v", skip, err)
		}
	}
}
