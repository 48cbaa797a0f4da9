package certs

import "testing"

func TestPairsAreParsedFromSettings(t *testing.T) {
	for text, want := range map[string]Pair{
		"a.pem":        {Cert: "a.pem"},
		"a.crt: a.key": {Cert: "a.crt", Key: "a.key"},
	} {
		if got, err := ParsePair(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ":a.key", "a.crt:"} {
		if _, err := ParsePair(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
