package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Placeholders in the texts of letters, between double braces.
const (
	HoldEmail    = "email"    // the developer's address
	HoldPortal   = "portal"   // address of the portal
	HoldLink     = "link"     // where an address is confirmed or a password set
	HoldKey      = "key"      // the key, the user's name, or the client's id
	HoldPassword = "password" // the password, or the client's secret
	HoldPolicies = "policies" // names, between commas
	HoldReason   = "reason"   // why a request was refused
	HoldEvent    = "event"    // type of an event
)

var placeholders = []string{HoldEmail, HoldPortal, HoldLink, HoldKey, HoldPassword, HoldPolicies, HoldReason, HoldEvent}

// CheckText refuses a text of a letter with an unknown placeholder.
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

// UsualCopy returns the default text of a letter.
func UsualCopy(kind LetterKind) MailCopy { return usual[kind] }

var usual = map[LetterKind]MailCopy{
	WelcomeLetter: {
		Subject: "Welcome to the developer portal",
		Body:    "Hello,\n\nyour account for {{email}} is ready. Choose an API from the catalogue and ask for access:\n\n{{portal}}",
	},
	VerifyLetter: {
		Subject: "Confirm your address",
		Body:    "Hello,\n\nplease confirm that {{email}} is your address. You are asked for the password that you chose:\n\n{{link}}\n\nIf you did not sign up, leave this letter alone: without it nothing happens.",
	},
	ResetLetter: {
		Subject: "Set a new password",
		Body:    "Hello,\n\nsomebody asked for a new password for {{email}}. If it was you, set it here within an hour:\n\n{{link}}\n\nIf it was not, leave this letter alone: your password stays as it is.",
	},
	KeyLetter: {
		Subject: "Your access was approved",
		Body:    "Hello,\n\nyour request was approved. You now have access to: {{policies}}.",
	},
	RejectionLetter: {
		Subject: "Your request was not approved",
		Body:    "Hello,\n\nyour request for access was not approved.\n\n{{reason}}",
	},
	InvitationLetter: {
		Subject: "You are invited to the API management",
		Body:    "Hello,\n\nyou are invited to the management of APIs as {{email}}. This link signs you in once, within 72 hours; then choose a password:\n\n{{link}}",
	},
	LostPasswordLetter: {
		Subject: "Set a new password",
		Body:    "Hello,\n\nsomebody asked for a new password for {{email}} in the management of APIs. If it was you, this link signs you in once, within an hour; then choose another password:\n\n{{link}}\n\nIf it was not, leave this letter alone: your password stays as it is.",
	},
	EventLetter: {
		Subject: "{{event}}",
		Body:    "Hello,\n\nthis happened in the developer portal: {{event}}.\n\n{{reason}}",
	},
}
