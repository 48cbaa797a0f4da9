package model

// A Letter is a letter to a developer, or to a user of the admin.
type Letter struct {
	Org       string
	Kind      LetterKind
	To        string // an address
	Developer string // id; "" for nobody

	Token      string      // of the link in it, for letters about addresses and passwords; a secret
	Link       string      // in place of Token, for letters to users: the whole link; a secret
	Credential *Credential // for KeyLetter; a secret
	Policies   []string    // names, for KeyLetter
	Reason     string      // for RejectionLetter
	Event      string      // for EventLetter: its type
}

// LetterKind is the kind of a letter.
type LetterKind string

// The letters. The configuration has their texts, and which are sent.
const (
	WelcomeLetter   LetterKind = "welcome_email"
	KeyLetter       LetterKind = "key_email"
	ResetLetter     LetterKind = "reset_password_email"
	VerifyLetter    LetterKind = "verify_email"
	RejectionLetter LetterKind = "key_rejected_email"
	EventLetter     LetterKind = "event_email"

	InvitationLetter   LetterKind = "user_invitation_email" // to users, as the next
	LostPasswordLetter LetterKind = "user_password_email"
)

// A Credential is the result of a key request. It is shown once.
type Credential struct {
	// The key, the name of a user, or the id of an OAuth client, shown this once.
	RawKey string `json:"RawKey"`
	// Password of a user or secret of a client, shown this once; empty: the credential is a key.
	Password string `json:"Password"`
}

// An Event is sent to webhooks.
type Event struct {
	Org       string
	Developer string // whose webhooks get it, besides the organisation's; "" for none
	Type      string // such as key_request_event.submitted
	Data      any    // JSON without secrets
}

// Types of events.
const (
	RequestSubmitted = "key_request_event.submitted"
	RequestUpdated   = "key_request_event.updated"
	RequestApproved  = "key_request_event.approved"
	RequestRejected  = "key_request_event.rejected"
	KeyCreated       = "key_event.created"
	KeyUpdated       = "key_event.updated"
	KeyRotated       = "key_event.rotated"
	KeyRevoked       = "key_event.revoked"
	APICreated       = "api_event.created" // to the organisation alone, as the two below
	APIUpdated       = "api_event.updated"
	APIDeleted       = "api_event.deleted"
	WebhookPing      = "webhook_event.ping"     // to one webhook alone
	WebhookDisabled  = "webhook_event.disabled" // by letter alone
	WebhookMissed    = "webhook_event.missed"   // by letter alone: there was no room for an event of a stream
)
