package definition

import (
	"strings"
	"testing"
)

var certificateSum = strings.Repeat("0a", CertificateSumLength/2)

func TestIDsAreToldFromPaths(t *testing.T) {
	for _, c := range []struct {
		text, org string
		id, entry bool
	}{
		{certificateSum, "", true, true},
		{"acme" + certificateSum, "acme", true, true},
		{"5e9d9544a1dcd60001d0ed20" + certificateSum, "5e9d9544a1dcd60001d0ed20", true, true},
		{"/etc/" + certificateSum, "", false, true},
		{"certs/x", "", false, true},
		{"x.pem", "", false, true},
		{strings.ToUpper(certificateSum), "", false, false},
		{certificateSum[1:], "", false, false},
		{"", "", false, false},
	} {
		org, got, ok := SplitCertificateID(c.text)
		if ok != c.id || org != c.org || ok && got != certificateSum {
			t.Errorf("%q: %q, %q, %v", c.text, org, got, ok)
		}
		if (CheckCertificateID(c.text) == "") != c.id || (checkCertificate(c.text) == "") != c.entry {
			t.Errorf("%q: as an id %q, as an entry %q", c.text, CheckCertificateID(c.text), checkCertificate(c.text))
		}
	}
}

func TestTheSumNamesACertificateInWhateverOrganisation(t *testing.T) {
	inOrg := "acme" + certificateSum
	for id, want := range map[string]bool{certificateSum: true, inOrg: true, "acme" + strings.Repeat("b", CertificateSumLength): false, certificateSum[1:]: false, "": false} {
		if got := NamesCertificate(id, []byte(certificateSum)); got != want {
			t.Errorf("%q names it: %v", id, got)
		}
	}
	shown := []byte(certificateSum)
	if n := testing.AllocsPerRun(100, func() { NamesCertificate(inOrg, shown) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
