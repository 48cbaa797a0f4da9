package basic

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
)

func encoded(pair string) string { return base64.StdEncoding.EncodeToString([]byte(pair)) }

func TestHeadersOfEachForm(t *testing.T) {
	for _, c := range []struct {
		value, user, password string
		fault                 Fault
	}{
		{"Basic " + encoded("bob:secret"), "bob", "secret", Sound},
		{"basic \t" + encoded("bob:secret") + " ", "bob", "secret", Sound},
		{"BASIC " + encoded("bob:"), "bob", "", Sound},
		{"Basic " + encoded(":secret"), "", "secret", Sound},
		{"Basic " + encoded("bøb:geheimnis ß"), "bøb", "geheimnis ß", Sound},
		{"", "", "", NotWords},
		{"Basic", "", "", NotWords},
		{"Basic ", "", "", NotWords},
		{"Basic a b", "", "", NotWords},
		{"Bearer " + encoded("bob:secret"), "", "", NotWords},
		{encoded("bob:secret"), "", "", NotWords},
		{"Basic ?", "", "", NotBase64},
		{"Basic " + strings.TrimRight(encoded("bob:secre"), "="), "bob", "secre", Sound},
		{"Basic " + strings.TrimRight(encoded("bob:secret"), "="), "", "", NotBase64},
		{"Basic " + encoded("bob"), "", "", NotPair},
		{"Basic " + encoded("bob:se:cret"), "", "", NotPair},
		{"Basic " + encoded("bob:se\ncret"), "", "", NotPair},
		{"Basic " + encoded("b\x00b:secret"), "", "", NotPair},
	} {
		all, colon, fault := Decode([]byte("org1"), []byte(c.value))
		if fault != c.fault {
			t.Errorf("%q: fault %d, want %d", c.value, fault, c.fault)
			continue
		}
		if fault != Sound {
			if string(all) != "org1" {
				t.Errorf("%q left %q", c.value, all)
			}
			continue
		}
		if string(all[:colon]) != "org1"+c.user || string(all[colon+1:]) != c.password {
			t.Errorf("%q: %q and %q", c.value, all[:colon], all[colon+1:])
		}
	}
}

func TestDecodingDoesNotAllocate(t *testing.T) {
	value, room := []byte("Basic "+encoded("somebody:secret")), make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() {
		if _, _, fault := Decode(room, value); fault != Sound {
			t.Fatal(fault)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzHeader holds what is read of a header against what the standard library
// and RFC 7617 make of it.
func FuzzHeader(f *testing.F) {
	for _, seed := range []string{"", "Basic", "basic eA==", "Basic Ym9iOnNlY3JldA==", "Basic Ym9iOnNlY3JldA== x", "Basic Ojo=", "Basic AAAA"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		before := bytes.Clone(value)
		all, colon, fault := Decode([]byte("org1"), value)
		if !bytes.Equal(before, value) || !bytes.HasPrefix(all, []byte("org1")) {
			t.Fatalf("%q became %q and %q", before, value, all)
		}
		words := strings.FieldsFunc(string(value), func(r rune) bool { return r == ' ' || r == '\t' })
		if want := len(words) == 2 && strings.EqualFold(words[0], "basic"); want != (fault != NotWords) && len(words) == 2 && isASCII(words[0]) {
			t.Fatalf("%q: fault %d", value, fault)
		}
		if fault != Sound {
			return
		}
		plain, err := base64.StdEncoding.DecodeString(words[1])
		if err != nil || string(all[4:]) != string(plain) {
			t.Fatalf("%q: %q, want %q, %v", value, all[4:], plain, err)
		}
		user, password := all[4:colon], all[colon+1:]
		if all[colon] != ':' || bytes.Contains(user, []byte{':'}) || bytes.Contains(password, []byte{':'}) || hasControl(all) {
			t.Fatalf("%q: %q and %q", value, user, password)
		}
	})
}

func isASCII(s string) bool { return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 }) }
