package catalogue

import "github.com/sluicegate/sluice/admin/portal/model"

// Defaults returns the default configuration: sign-up is open, and requests need
// approval.
func Defaults(org string) *model.Configuration {
	return &model.Configuration{
		OrgID: org, SignupFields: []string{}, KeyRequestFields: []string{}, RedirectHosts: []string{},
		RequireKeyApproval: true, OAuthUsageLimit: -1, HashKeys: true,
		MailOptions: model.MailOptions{Copy: defaultCopies()},
	}
}

// defaultCopies returns the default texts of letters.
func defaultCopies() model.MailCopies {
	wanted := func(kind model.LetterKind) model.MailCopy {
		text := model.UsualCopy(kind)
		text.Enabled, text.SignOff = true, "The portal team"
		return text
	}
	return model.MailCopies{
		Welcome: wanted(model.WelcomeLetter), Key: wanted(model.KeyLetter), ResetPassword: wanted(model.ResetLetter),
	}
}
