package wsconn

import "testing"

func TestAsksForDeflate(t *testing.T) {
	for offers, want := range map[string]bool{
		"permessage-deflate":                         true,
		"permessage-deflate; client_max_window_bits": true,
		"permessage-deflate;client_max_window_bits=10;server_no_context_takeover": true,
		"x, permessage-deflate; client_no_context_takeover":                       true,
		"permessage-deflate; server_max_window_bits=10, permessage-deflate":       true,
		"permessage-deflate; server_max_window_bits=10":                           false,
		"permessage-deflate; new":                                                 false,
		"deflate-frame":                                                           false,
		"":                                                                        false,
	} {
		if got := AsksForDeflate([]byte(offers)); got != want {
			t.Errorf("%q: %t", offers, got)
		}
	}
}
