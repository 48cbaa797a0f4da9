package config

// Messages holds replacements for the texts of the gateway's own responses, under the
// names that comparable gateways use.
type Messages struct {
	Auth AuthMessages `yaml:"auth"`
}

// AuthMessages are texts about credentials.
type AuthMessages struct {
	FieldMissing Message `yaml:"auth_field_missing"`
	KeyNotFound  Message `yaml:"key_not_found"`
	KeyInvalid   Message `yaml:"key_is_invalid"`
	CertNotFound Message `yaml:"cert_not_found"`
	CertExpired  Message `yaml:"cert_expired"`
	CertRequired Message `yaml:"cert_required"`
	CertMismatch Message `yaml:"cert_mismatch"`
}

// Message is one text, and the status that it is sent with.
type Message struct {
	// Text of the response. Empty: the gateway's own.
	Message string `yaml:"message"`
	// Status of the answer.
	Code int `yaml:"code" range:"400..599"`
}

// ownMessages are the gateway's own texts.
func ownMessages() Messages {
	said := func(code int) Message { return Message{Code: code} }
	return Messages{Auth: AuthMessages{
		FieldMissing: said(401), KeyNotFound: said(403), KeyInvalid: said(403),
		CertNotFound: said(401), CertExpired: said(403), CertRequired: said(401), CertMismatch: said(401),
	}}
}
