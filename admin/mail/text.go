package mail

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/admin/portal/record"
)

// The placeholders that texts of letters may hold, between two braces each.
const (
	holdEmail    = "email"    // the developer's address
	holdPortal   = "portal"   // address of the portal
	holdLink     = "link"     // where an address is confirmed or a password set
	holdKey      = "key"      // the key, the user's name, or the client's id
	holdPassword = "password" // the password, or the client's secret
	holdPolicies = "policies" // names, between commas
	holdReason   = "reason"   // why a request was refused
	holdEvent    = "event"    // type of an event
)

var placeholders = []string{holdEmail, holdPortal, holdLink, holdKey, holdPassword, holdPolicies, holdReason, holdEvent}

// CheckText refuses a text of a letter that holds a placeholder which is none.
func CheckText(text string) error {
	for rest := text; ; {
		_, after, found := strings.Cut(rest, "{{")
		if !found {
			return nil
		}
		name, behind, closed := strings.Cut(after, "}}")
		if !closed {
			return errors.New("has {{ without }}")
		}
		if !slices.Contains(placeholders, strings.TrimSpace(name)) {
			return fmt.Errorf("{{%.40s}} is no placeholder; there are {{%s}}", name, strings.Join(placeholders, "}}, {{"))
		}
		rest = behind
	}
}

// fill puts values in the place of placeholders. Values are not looked through
// again: what a developer wrote is never a placeholder.
func fill(text string, values map[string]string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "{{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, behind, closed := strings.Cut(after, "}}")
		if !closed {
			b.WriteString("{{" + after)
			return b.String()
		}
		b.WriteString(values[strings.TrimSpace(name)])
		text = behind
	}
}

// holds tells whether a text has one of some placeholders.
func holds(text string, names ...string) bool {
	for rest := text; ; {
		_, after, found := strings.Cut(rest, "{{")
		if !found {
			return false
		}
		name, behind, _ := strings.Cut(after, "}}")
		if slices.Contains(names, strings.TrimSpace(name)) {
			return true
		}
		rest = behind
	}
}

// usual are the texts of letters where the configuration has none.
var usual = map[record.LetterKind]record.MailCopy{
	record.WelcomeLetter: {
		Subject: "Welcome to the developer portal",
		Body:    "Hello,\n\nyour account for {{email}} is ready. Choose an API from the catalogue and ask for access:\n\n{{portal}}",
	},
	record.VerifyLetter: {
		Subject: "Confirm your address",
		Body:    "Hello,\n\nplease confirm that {{email}} is your address. You are asked for the password that you chose:\n\n{{link}}\n\nIf you did not sign up, leave this letter alone: without it nothing happens.",
	},
	record.ResetLetter: {
		Subject: "Set a new password",
		Body:    "Hello,\n\nsomebody asked for a new password for {{email}}. If it was you, set it here within an hour:\n\n{{link}}\n\nIf it was not, leave this letter alone: your password stays as it is.",
	},
	record.KeyLetter: {
		Subject: "Your access was approved",
		Body:    "Hello,\n\nyour request was approved. You now have access to: {{policies}}.",
	},
	record.RejectionLetter: {
		Subject: "Your request was not approved",
		Body:    "Hello,\n\nyour request for access was not approved.\n\n{{reason}}",
	},
	record.EventLetter: {
		Subject: "{{event}}",
		Body:    "Hello,\n\nthis happened in the developer portal: {{event}}.\n\n{{reason}}",
	},
}

// shownOnce stands above a credential, which nobody can look up afterwards.
const shownOnce = "Keep this in a safe place. It is not stored anywhere, and cannot be shown again."
