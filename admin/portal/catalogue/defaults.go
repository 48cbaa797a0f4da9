package catalogue

import "github.com/sluicegate/sluice/admin/portal/record"

// Defaults returns the configuration of a portal that nobody has configured:
// everybody may sign up, and a person approves each request.
func Defaults(org string) *record.Configuration {
	return &record.Configuration{
		OrgID: org, SignupFields: []string{}, KeyRequestFields: []string{}, RedirectHosts: []string{},
		RequireKeyApproval: true, OAuthUsageLimit: -1, HashKeys: true,
		MailOptions: record.MailOptions{Copy: defaultCopies()},
	}
}

// defaultCopies are letters that say what they have to without knowing the
// organisation.
func defaultCopies() record.MailCopies {
	return record.MailCopies{
		Welcome: record.MailCopy{
			Enabled: true, Subject: "Welcome to the developer portal",
			Body:    "Your account is ready. Sign in to see the catalogue and to ask for access to an API.",
			SignOff: "The portal team",
		},
		Key: record.MailCopy{
			Enabled: true, Subject: "Your request for access is approved",
			Body:    "Your request is approved.",
			SignOff: "The portal team",
		},
		ResetPassword: record.MailCopy{
			Enabled: true, Subject: "Set a new password",
			Body:    "Somebody, probably you, asked for a new password of your account. If it was not you, there is nothing to do.",
			SignOff: "The portal team",
		},
	}
}
