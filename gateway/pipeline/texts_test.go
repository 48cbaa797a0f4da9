package pipeline

import "testing"

func TestOperatorsMayWordSomeRefusals(t *testing.T) {
	missing := NewRejection(ReasonAuthMissing, 401, "ours").Named(TextFieldMissing)
	other := NewRejection(ReasonRateLimit, 429, "ours")
	var w Wording
	w.Set(TextFieldMissing, `say "please"`, 403)
	w.Set(TextKeyNotFound, "", 404)
	w.Set(TextCertExpired, "renew it", 0)
	for _, c := range []struct {
		wording *Wording
		of      *Rejection
		status  int
		body    string
	}{
		{nil, missing, 401, "ours"},
		{&w, missing, 403, `say "please"`},
		{&w, other, 429, "ours"},
		{&w, NewRejection(ReasonAuthUnknown, 403, "ours").Named(TextKeyNotFound), 404, "ours"},
		{&w, NewRejection(ReasonCertificateExpired, 403, "ours").Named(TextCertExpired), 403, "renew it"},
		{new(Wording), missing, 401, "ours"},
	} {
		if status, said := c.wording.Of(c.of); status != c.status || string(said.Text()) != c.body {
			t.Errorf("%s: %d %s, want %d %s", c.of.Wording, status, said.Text(), c.status, c.body)
		}
	}
	if n := testing.AllocsPerRun(100, func() { w.Of(missing) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTextsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for text := range MaxTexts {
		if name := text.String(); seen[name] || (name == "") != (text == TextNone) {
			t.Errorf("%d is called %q", text, name)
		}
		seen[text.String()] = true
	}
	if MaxTexts.String() != "unknown" {
		t.Error(MaxTexts.String())
	}
}
