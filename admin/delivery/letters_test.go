package delivery

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/store"
)

// tray takes what would be queued.
type tray struct {
	config model.Configuration
	taken  []Message
}

func (y *tray) Put(_ context.Context, _ *store.Tx, m Message) (string, error) {
	y.taken = append(y.taken, m)
	return "msg", nil
}

func (y *tray) CanSeal() error { return nil }

func (y *tray) Configuration(context.Context, string) (*model.Configuration, error) {
	return &y.config, nil
}

func (y *tray) put(t *testing.T, letter model.Letter) (*Message, letterMessage) {
	t.Helper()
	y.taken = nil
	if err := NewLetters(y, y, "https://dev.example.com/portal/").Put(t.Context(), nil, letter); err != nil {
		t.Fatal(err)
	}
	if len(y.taken) == 0 {
		return nil, letterMessage{}
	}
	var m letterMessage
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

func aKey() model.Letter {
	return model.Letter{
		Org: "o", Kind: model.KeyLetter, To: "dev@example.org", Developer: "d",
		Credential: &model.Credential{RawKey: "slk_secret"}, Policies: []string{"Gold", "Silver"},
	}
}

func TestAKeyIsInItsLetterUnlessThatIsHidden(t *testing.T) {
	y := wanted()
	queued, m := y.put(t, aKey())
	want := "Hello,\n\nyour request was approved. You now have access to: Gold, Silver.\n\nKeep this in a safe place. It is not stored anywhere, and cannot be shown again.\n\nKey: slk_secret\n"
	if m.Text != want || !queued.Secret || queued.Target != "dev@example.org" || queued.Kind != Letter || queued.Event != "key_email" {
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
	for _, kind := range []model.LetterKind{model.WelcomeLetter, model.KeyLetter, model.ResetLetter} {
		if queued, _ := y.put(t, model.Letter{Kind: kind, To: "dev@example.org"}); queued != nil {
			t.Errorf("%s was queued", kind)
		}
	}
	if queued, _ := y.put(t, model.Letter{Kind: model.VerifyLetter, To: "dev@example.org", Token: "t"}); queued == nil {
		t.Error("a letter that no setting is about was not queued")
	}
	if queued, _ := wanted().put(t, model.Letter{Kind: model.WelcomeLetter}); queued != nil {
		t.Error("a letter to nobody was queued")
	}
}

func TestLinksLeadToThePortal(t *testing.T) {
	for kind, page := range map[model.LetterKind]string{
		model.VerifyLetter: "https://dev.example.com/portal/verify?token=a%2Bb", model.ResetLetter: "https://dev.example.com/portal/reset?token=a%2Bb",
	} {
		queued, m := wanted().put(t, model.Letter{Kind: kind, To: "dev@example.org", Token: "a+b"})
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
	_, m := y.put(t, model.Letter{
		Kind: model.WelcomeLetter, To: "dev@example.org", Reason: "{{key}}\r\nBcc: x@example.org\u2028y",
		Credential: &model.Credential{RawKey: "slk_secret"},
	})
	if strings.ContainsAny(m.Subject+m.FromName, "\r\n\u2028") || strings.Contains(m.Subject, "slk_") {
		t.Errorf("subject %q, from %q", m.Subject, m.FromName)
	}
	if strings.Contains(m.HTML, "<script") || !strings.Contains(m.HTML, "&lt;script&gt;") {
		t.Errorf("page %s", m.HTML)
	}
	for _, address := range []string{"dev@example.org\r\nBcc: x@example.org", "Dev <dev@example.org>", "dev", "a@b, c@d", "dev@example.org\x00"} {
		if err := NewLetters(y, y, "").Put(t.Context(), nil, model.Letter{Kind: model.WelcomeLetter, To: address}); err == nil {
			t.Errorf("a letter to %q was queued", address)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("Hello {{email}} {{key}}{{", "v{{password}}")
	f.Fuzz(func(t *testing.T, text, value string) {
		filled := fillPlaceholders(text, map[string]string{model.HoldEmail: value})
		if model.CheckText(text) == nil && !strings.Contains(value, "{{") && strings.Contains(strings.ReplaceAll(filled, value, ""), "{{") {
			t.Errorf("%q is filled to %q", text, filled)
		}
		if page := asHTML(filled); strings.Contains(page, "<script") || strings.ContainsAny(oneLine(filled), "\r\n") {
			t.Errorf("%q becomes %q", text, page)
		}
	})
}
