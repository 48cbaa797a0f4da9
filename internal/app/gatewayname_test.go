package app

import "testing"

func TestNamesOfGateways(t *testing.T) {
	for listen, want := range map[string]string{":8080": "vm:8080", "127.0.0.1:8080": "vm@127.0.0.1:8080", "[::1]:8080": "vm@[::1]:8080", "": "vm"} {
		if got := nameOf("vm", listen); got != want {
			t.Errorf("%q: %s", listen, got)
		}
	}
}
