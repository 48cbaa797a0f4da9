package certificate

import (
	"strings"
	"testing"
)

var sum = strings.Repeat("0a", SumLength/2)

func TestIDsAreToldFromPaths(t *testing.T) {
	for _, c := range []struct {
		text, org string
		id, entry bool
	}{
		{sum, "", true, true},
		{"acme" + sum, "acme", true, true},
		{"5e9d9544a1dcd60001d0ed20" + sum, "5e9d9544a1dcd60001d0ed20", true, true},
		{"/etc/" + sum, "", false, true},
		{"certs/x", "", false, true},
		{"x.pem", "", false, true},
		{strings.ToUpper(sum), "", false, false},
		{sum[1:], "", false, false},
		{"", "", false, false},
	} {
		org, got, ok := SplitID(c.text)
		if ok != c.id || org != c.org || ok && got != sum {
			t.Errorf("%q: %q, %q, %v", c.text, org, got, ok)
		}
		if (CheckID(c.text) == "") != c.id || (Check(c.text) == "") != c.entry {
			t.Errorf("%q: as an id %q, as an entry %q", c.text, CheckID(c.text), Check(c.text))
		}
	}
}

func TestTheSumNamesACertificateInWhateverOrganisation(t *testing.T) {
	inOrg := "acme" + sum
	for id, want := range map[string]bool{sum: true, inOrg: true, "acme" + strings.Repeat("b", SumLength): false, sum[1:]: false, "": false} {
		if got := Names(id, []byte(sum)); got != want {
			t.Errorf("%q names it: %v", id, got)
		}
	}
	shown := []byte(sum)
	if n := testing.AllocsPerRun(100, func() { Names(inOrg, shown) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
