package webhooksign

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
)

// Computed with openssl:
// printf 'msg_1.1700000000.{"a":1}' | openssl dgst -sha256 -mac HMAC -macopt hexkey:<32 bytes of 0x61> -binary | base64
const known = "v1,gY5u0Gy1AnBsf6YdPFLa7N7Wpo237alzmdfC0DTFXRI="

var key = bytes.Repeat([]byte("a"), 32)

func TestASignatureIsThatOfTheSpecification(t *testing.T) {
	if got := Sign([][]byte{key}, "msg_1", "1700000000", []byte(`{"a":1}`)); got != known {
		t.Errorf("signed %s", got)
	}
	other := []byte("another secret of a connector")
	if both := Sign([][]byte{key, other}, "msg_1", "1700000000", []byte(`{"a":1}`)); !strings.HasPrefix(both, known+" v1,") || len(both) != 2*len(known)+1 {
		t.Errorf("signed %s", both)
	}
}

func TestSecretsAreKeysOrText(t *testing.T) {
	for secret, want := range map[string]string{
		Prefix + base64.StdEncoding.EncodeToString(key): string(key),
		"0123456789abcdef":            "0123456789abcdef",
		Prefix:                        Prefix,
		Prefix + "not base64!":        Prefix + "not base64!",
		"x" + Prefix + "YWFhYWFhYQ==": "x" + Prefix + "YWFhYWFhYQ==",
	} {
		if got := Key(secret); string(got) != want {
			t.Errorf("%s: %q", secret, got)
		}
	}
}

func TestOnlyMatchingSignaturesMatch(t *testing.T) {
	other := bytes.Repeat([]byte("b"), 32)
	body := []byte(`{"a":1}`)
	for name, c := range map[string]struct {
		header        string
		keys          [][]byte
		id, timestamp string
		body          string
		want          bool
	}{
		"right":             {known, [][]byte{key}, "msg_1", "1700000000", `{"a":1}`, true},
		"one of two keys":   {known, [][]byte{other, key}, "msg_1", "1700000000", `{"a":1}`, true},
		"one of two":        {Sign([][]byte{other}, "msg_1", "1700000000", body) + " " + known, [][]byte{key}, "msg_1", "1700000000", `{"a":1}`, true},
		"beside another":    {"v1a,xyz " + known, [][]byte{key}, "msg_1", "1700000000", `{"a":1}`, true},
		"another key":       {known, [][]byte{other}, "msg_1", "1700000000", `{"a":1}`, false},
		"no key":            {known, nil, "msg_1", "1700000000", `{"a":1}`, false},
		"another id":        {known, [][]byte{key}, "msg_2", "1700000000", `{"a":1}`, false},
		"another timestamp": {known, [][]byte{key}, "msg_1", "1700000001", `{"a":1}`, false},
		"another body":      {known, [][]byte{key}, "msg_1", "1700000000", `{"a":2}`, false},
	} {
		signatures, err := Parse(c.header)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := signatures.Match(c.keys, c.id, c.timestamp, []byte(c.body)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestHeadersWithoutAUsableSignatureAreRefused(t *testing.T) {
	for _, header := range []string{
		"", " ", "v1", "v1,", "v2,abc", "v1,!", "v1,YWJj", known[:len(known)-1], known + "A",
		strings.Repeat(known+" ", 100), known + " v1,AAAA",
	} {
		if s, err := Parse(header); err == nil {
			t.Errorf("%.60q gives %d signatures", header, len(s))
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(known)
	f.Add("v1a,xyz " + known + " " + known)
	f.Add("v1, v1,=")
	f.Fuzz(func(t *testing.T, header string) {
		all, err := Parse(header)
		if (err == nil) != (len(all) > 0) {
			t.Fatalf("%d signatures and %v", len(all), err)
		}
		for i := range all {
			if !strings.Contains(header, base64.StdEncoding.EncodeToString(all[i][:])) {
				t.Fatal("a signature is not in the header")
			}
		}
		if all.Match([][]byte{key}, "id", "1", []byte(header)) {
			t.Fatal("a signature was guessed")
		}
	})
}
