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
	wanted := func(kind record.LetterKind) record.MailCopy {
		text := record.UsualCopy(kind)
		text.Enabled, text.SignOff = true, "The portal team"
		return text
	}
	return record.MailCopies{
		Welcome: wanted(record.WelcomeLetter), Key: wanted(record.KeyLetter), ResetPassword: wanted(record.ResetLetter),
	}
}
