package mail

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/admin/delivery"
	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/store"
)

// tray takes what would be queued.
type tray struct {
	config record.Configuration
	taken  []delivery.Message
}

func (y *tray) Put(_ context.Context, _ *store.Tx, m delivery.Message) (string, error) {
	y.taken = append(y.taken, m)
	return "msg", nil
}

func (y *tray) CanSeal() error { return nil }

func (y *tray) Configuration(context.Context, string) (*record.Configuration, error) {
	return &y.config, nil
}

func (y *tray) put(t *testing.T, letter record.Letter) (*delivery.Message, message) {
	t.Helper()
	y.taken = nil
	if err := NewLetters(y, y, "https://dev.example.com/portal/").Put(t.Context(), nil, letter); err != nil {
		t.Fatal(err)
	}
	if len(y.taken) == 0 {
		return nil, message{}
	}
	var m message
	if err := json.Unmarshal(y.taken[0].Payload, &m); err != nil {
		t.Fatal(err)
	}
	return &y.taken[0], m
}

func wanted() *tray {
	y := new(tray)
	copies := &y.config.MailOptions.Copy
	copies.Welcome.Enabled, copies.Key.Enabled, copies.ResetPassword.Enabled = true, true, true
	return y
}

func aKey() record.Letter {
	return record.Letter{
		Org: "o", Kind: record.KeyLetter, To: "dev@example.org", Developer: "d",
		Credential: &record.Credential{RawKey: "slk_secret"}, Policies: []string{"Gold", "Silver"},
	}
}

func TestAKeyIsInItsLetterUnlessThatIsHidden(t *testing.T) {
	y := wanted()
	queued, m := y.put(t, aKey())
	want := "Hello,\n\nyour request was approved. You now have access to: Gold, Silver.\n\nKeep this in a safe place. It is not stored anywhere, and cannot be shown again.\n\nKey: slk_secret\n"
	if m.Text != want || !queued.Secret || queued.Target != "dev@example.org" || queued.Kind != delivery.Letter || queued.Event != "key_email" {
		t.Errorf("queued %+v with text\n%s", queued, m.Text)
	}
	y.config.MailOptions.Copy.Key.Body = "Key {{key}}, password {{password}}."
	if _, m = y.put(t, aKey()); m.Text != "Key slk_secret, password .\n" {
		t.Errorf("a text with the key in it: %q", m.Text)
	}
	y.config.MailOptions.Copy.Key.HideTokenData = true
	if queued, m = y.put(t, aKey()); strings.Contains(string(queued.Payload), "slk_secret") || queued.Secret {
		t.Errorf("hidden: %s", queued.Payload)
	}
}

func TestLettersThatAreNotWantedAreNotWritten(t *testing.T) {
	y := new(tray)
	for _, kind := range []record.LetterKind{record.WelcomeLetter, record.KeyLetter, record.ResetLetter} {
		if queued, _ := y.put(t, record.Letter{Kind: kind, To: "dev@example.org"}); queued != nil {
			t.Errorf("%s was queued", kind)
		}
	}
	if queued, _ := y.put(t, record.Letter{Kind: record.VerifyLetter, To: "dev@example.org", Token: "t"}); queued == nil {
		t.Error("a letter that no setting is about was not queued")
	}
	if queued, _ := wanted().put(t, record.Letter{Kind: record.WelcomeLetter}); queued != nil {
		t.Error("a letter to nobody was queued")
	}
}

func TestLinksLeadToThePortal(t *testing.T) {
	for kind, page := range map[record.LetterKind]string{
		record.VerifyLetter: "https://dev.example.com/portal/verify?token=a%2Bb", record.ResetLetter: "https://dev.example.com/portal/reset?token=a%2Bb",
	} {
		queued, m := wanted().put(t, record.Letter{Kind: kind, To: "dev@example.org", Token: "a+b"})
		if !strings.Contains(m.Text, "\n"+page+"\n") || !strings.Contains(m.HTML, `<a href="`+page+`">`+page+`</a>`) || !queued.Secret {
			t.Errorf("%s: %s%s", kind, m.Text, m.HTML)
		}
	}
}

func TestNothingThatPeopleWriteBreaksOutOfALetter(t *testing.T) {
	y := wanted()
	y.config.MailOptions.FromName = "Ann\r\nBcc: all@example.org"
	y.config.MailOptions.Copy.Welcome.Subject = "Hi {{reason}}\r\nX-Evil: 1"
	y.config.MailOptions.Copy.Welcome.SignOff = "<script>alert(1)</script>"
	_, m := y.put(t, record.Letter{
		Kind: record.WelcomeLetter, To: "dev@example.org", Reason: "{{key}}\r\nBcc: x@example.org\u2028y",
		Credential: &record.Credential{RawKey: "slk_secret"},
	})
	if strings.ContainsAny(m.Subject+m.FromName, "\r\n\u2028") || strings.Contains(m.Subject, "slk_") {
		t.Errorf("subject %q, from %q", m.Subject, m.FromName)
	}
	if strings.Contains(m.HTML, "<script") || !strings.Contains(m.HTML, "&lt;script&gt;") {
		t.Errorf("page %s", m.HTML)
	}
	for _, address := range []string{"dev@example.org\r\nBcc: x@example.org", "Dev <dev@example.org>", "dev", "a@b, c@d", "dev@example.org\x00"} {
		if err := NewLetters(y, y, "").Put(t.Context(), nil, record.Letter{Kind: record.WelcomeLetter, To: address}); err == nil {
			t.Errorf("a letter to %q was queued", address)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("Hello {{email}} {{key}}{{", "v{{password}}")
	f.Fuzz(func(t *testing.T, text, value string) {
		filled := fill(text, map[string]string{record.HoldEmail: value})
		if record.CheckText(text) == nil && !strings.Contains(value, "{{") && strings.Contains(strings.ReplaceAll(filled, value, ""), "{{") {
			t.Errorf("%q is filled to %q", text, filled)
		}
		if page := asHTML(filled); strings.Contains(page, "<script") || strings.ContainsAny(oneLine(filled), "\r\n") {
			t.Errorf("%q becomes %q", text, page)
		}
	})
}
