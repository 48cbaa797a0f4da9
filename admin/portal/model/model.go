// Package model holds the objects of the portal and their JSON: developers, catalogue
// entries, configurations and key requests, the letters that are sent and the events
// that are raised. Members that it does not know are kept.
package model

import (
	"encoding/json"
	"fmt"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/object"
)

// maxSize bounds one object, in bytes.
const maxSize = 1 << 20

// A Developer is an account of the portal. Its password is not part of it.
type Developer struct {
	// Id of the developer; filled in.
	// Example: "5d1c7f0e2a"
	ID string `json:"id"`
	// Address, and the name at log-in; at most 254 bytes.
	// Example: "ada@example.com"
	Email string `json:"email"`
	// Time at which the account was made (RFC 3339); filled in.
	// Example: "2026-11-28T07:00:00Z"
	DateCreated string `json:"date_created"`
	// Whether the developer may not log in.
	Inactive bool `json:"inactive"`
	// Id of the organisation that the developer belongs to; filled in.
	// Example: "acme"
	OrgID string `json:"org_id"`
	// Policies of each key, by the id of the key; filled in.
	// Example: {"9f86d081": ["starter"]}
	Keys map[string][]string `json:"keys"`
	// Id of the key for each policy, by policy; filled in.
	// Example: {"starter": "9f86d081"}
	Subscriptions map[string]string `json:"subscriptions"`
	// Further values by name, such as those of signup_fields; at most 100, of at most 4096 bytes each.
	// Example: {"company": "Example Ltd"}
	Fields map[string]string `json:"fields"`
	// Older member, at most 4096 bytes; kept, and without effect.
	// Example: ""
	Nonce string `json:"nonce"`
	// Older member, at most 4096 bytes; kept, and without effect.
	// Example: ""
	SSOKey string `json:"sso_key"`
	// OAuth clients of the developer, by policy; filled in.
	// Example: {"starter": [{"client_id": "shop", "redirect_uri": "https://shop.example/done"}]}
	OAuthClients map[string][]Client `json:"oauth_clients"`
	// Days after which a password must be replaced, 0 to 36500; 0 is never.
	// Example: 90
	PasswordMaxDays int64 `json:"password_max_days"`
	// Time at which the password was set (RFC 3339); filled in, and left out while there is no password.
	// Example: "2026-11-28T07:00:00Z"
	PasswordUpdated string `json:"password_updated,omitempty"`
	// Older member; always empty, as hashes of passwords are not shown.
	// Example: []
	PasswordHistory []string `json:"PWHistory"`
	// Time of the last log-in (RFC 3339); filled in, and left out before the first.
	// Example: "2026-11-28T07:00:00Z"
	LastLogin string `json:"last_login_date,omitempty"`
	// Whether the address is verified. Default: unchanged in an update.
	Verified *bool          `json:"verified,omitempty"`
	Unknown  object.Unknown `json:"-"`
}

// A Client is an OAuth client of a developer.
type Client struct {
	// Id of the client; filled in.
	// Example: "shop"
	ClientID string `json:"client_id"`
	// Secret of the client; shown once, when it is made.
	// Example: ""
	Secret string `json:"secret"`
	// URI that the client may be redirected to.
	// Example: "https://shop.example/done"
	RedirectURI string `json:"redirect_uri"`
	// What the application is, at most 2000 bytes.
	// Example: "Shop"
	AppDescription string `json:"app_description"`
	// What the application calls the API for, at most 2000 bytes.
	// Example: "Orders of the shop"
	UseCase string `json:"use_case"`
	// Time at which the client was made (RFC 3339); filled in.
	// Example: "2026-11-28T07:00:00Z"
	DateCreated string         `json:"date_created"`
	Unknown     object.Unknown `json:"-"`
}

// An Entry offers an API with a policy in a catalogue.
type Entry struct {
	// Id of the entry, which is part of the address of its page. Generated if empty.
	// Example: "orders"
	ID string `json:"id,omitempty"`
	// Name that developers see, at most 200 bytes.
	// Example: "Orders"
	Name string `json:"name"`
	// Summary in the list of the catalogue, at most 2048 bytes.
	// Example: "Create and track orders"
	ShortDescription string `json:"short_description"`
	// Description on the page of the entry in Markdown, at most 32768 bytes.
	// Example: "Create **orders** and track them."
	LongDescription string `json:"long_description"`
	// Whether developers see the entry.
	Show bool `json:"show"`
	// Id of the API that is offered. Needed without policy_id.
	// Example: "orders"
	APIID string `json:"api_id"`
	// Id of the policy that credentials get. Needed unless is_keyless is true.
	// Example: "starter"
	PolicyID string `json:"policy_id"`
	// Id of the document that describes the API. Default: none.
	// Example: "orders-openapi"
	Documentation string `json:"documentation"`
	// Version that developers see, at most 200 bytes.
	// Example: "v2"
	Version string `json:"version"`
	// Whether the API is called without a credential.
	IsKeyless bool `json:"is_keyless"`
	// Configuration that replaces that of the organisation for this entry, if its override is true.
	// Example: {"override": true, "require_key_approval": true}
	Config *Configuration `json:"config,omitempty"`
	// Further values by name, at most 50, of at most 4096 bytes each.
	// Example: {"team": "payments"}
	Fields map[string]string `json:"fields"`
	// Kind of credential that is issued. Default: authToken.
	// Example: "authToken"
	AuthType string         `json:"auth_type" oneof:"authToken basic oauth"`
	Unknown  object.Unknown `json:"-"`
}

// A Configuration is the configuration of an organisation's portal.
type Configuration struct {
	// Id of the configuration; filled in.
	// Example: "5d1c7f0e2a"
	ID string `json:"id"`
	// Id of the organisation; filled in.
	// Example: "acme"
	OrgID string `json:"org_id"`
	// Names of the fields of the sign-up form besides address and password, at most 50.
	// Example: ["company"]
	SignupFields []string `json:"signup_fields"`
	// Names of the fields of the form for key requests, at most 50.
	// Example: ["use_case"]
	KeyRequestFields []string `json:"key_request_fields"`
	// Whether key requests wait for a decision of an operator. Otherwise credentials are issued at once.
	RequireKeyApproval bool `json:"require_key_approval"`
	// Whether developers who ask for a key are sent to redirect_to.
	RedirectOnKeyRequest bool `json:"redirect_on_key_request"`
	// Path of the site of the portal, or URL of a host in redirect_hosts, at most 2048 bytes.
	// Example: "/pages/contact"
	RedirectTo string `json:"redirect_to"`
	// Hosts that redirect_to may name, with a port where it is not the usual one; at most 50.
	// Example: ["www.example.com"]
	RedirectHosts []string `json:"redirect_hosts"`
	// Whether a key request may name several policies.
	EnableMultiSelection bool `json:"enable_multi_selection"`
	// Whether developers cannot log in.
	DisableLogin bool `json:"disable_login"`
	// Whether developers cannot sign up.
	DisableSignup bool `json:"disable_signup"`
	// Whether developers have to log in after signing up.
	DisableAutoLogin bool `json:"disable_auto_login"`
	// Whether the addresses of new developers are not verified.
	DisableVerification bool `json:"disable_verification"`
	// Whether only developers who are logged in see the catalogue.
	CatalogueLoginOnly bool `json:"catalogue_login_only"`
	// OAuth clients of one developer, or, in the configuration of an entry, of one developer for its policy; 0 and -1 are no limit.
	// Example: 5
	OAuthUsageLimit int64 `json:"oauth_usage_limit"`
	// Address of the operator of the portal. Default: none.
	// Example: "apis@example.com"
	Email string `json:"email"`
	// Sender and texts of letters.
	// Example: {"mail_from_name": "Example APIs", "mail_from_email": "apis@example.com"}
	MailOptions MailOptions `json:"mail_options"`
	// Whether the configuration of an entry replaces that of the organisation. Without effect in that of the organisation.
	Override bool `json:"override"`
	// Whether keys are stored as hashes; filled in from the setting.
	HashKeys bool `json:"HashKeys"`
	// Targets of events.
	// Example: {"key_event": {"webhook": "https://hooks.example/portal"}}
	Events  EventOptions   `json:"event_options"`
	Unknown object.Unknown `json:"-"`
}

// EventOptions are the targets of an organisation's events.
type EventOptions struct {
	// Target of events of APIs.
	// Example: {"webhook": "https://hooks.example/portal"}
	API EventTarget `json:"api_event"`
	// Target of events of keys.
	// Example: {"webhook": "https://hooks.example/portal"}
	Key EventTarget `json:"key_event"`
	// Target of events of key requests.
	// Example: {"email": "apis@example.com"}
	KeyRequest EventTarget    `json:"key_request_event"`
	Unknown    object.Unknown `json:"-"`
}

// An EventTarget is the target of events of one kind.
type EventTarget struct {
	// URL that events are posted to, http or https, at most 2048 bytes. Default: none.
	// Example: "https://hooks.example/portal"
	Webhook string `json:"webhook"`
	// Address that a letter about each event is sent to. Default: none.
	// Example: "apis@example.com"
	Email   string         `json:"email"`
	Unknown object.Unknown `json:"-"`
}

// MailOptions are the sender and the texts of letters.
type MailOptions struct {
	// Name of the sender, at most 200 bytes.
	// Example: "Example APIs"
	FromName string `json:"mail_from_name"`
	// Address of the sender. Default: the setting of the admin.
	// Example: "apis@example.com"
	FromEmail string `json:"mail_from_email"`
	// Texts of the letters.
	// Example: {"key_email": {"enabled": true, "subject": "Your key"}}
	Copy    MailCopies     `json:"email_copy"`
	Unknown object.Unknown `json:"-"`
}

// MailCopies are the texts of the letters.
type MailCopies struct {
	// Letter to new developers.
	// Example: {"enabled": true, "subject": "Welcome"}
	Welcome MailCopy `json:"welcome_email"`
	// Letter with a credential.
	// Example: {"enabled": true, "subject": "Your key"}
	Key MailCopy `json:"key_email"`
	// Letter to choose another password.
	// Example: {"enabled": true, "subject": "Another password"}
	ResetPassword MailCopy       `json:"reset_password_email"`
	Unknown       object.Unknown `json:"-"`
}

// A MailCopy is the text of one letter.
type MailCopy struct {
	// Whether the letter is sent.
	Enabled bool `json:"enabled"`
	// Subject, at most 200 bytes.
	// Example: "Your key"
	Subject string `json:"subject"`
	// Text, at most 32768 bytes.
	// Example: "Here is your key."
	Body string `json:"body"`
	// End of the text, at most 2048 bytes.
	// Example: "The API team"
	SignOff string `json:"sign_off"`
	// Whether the credential is left out of the letter.
	HideTokenData bool           `json:"hide_token_data"`
	Unknown       object.Unknown `json:"-"`
}

// A KeyRequest asks for a credential for some policies.
type KeyRequest struct {
	// Id of the request; filled in.
	// Example: "5d1c7f0e2a"
	ID string `json:"id"`
	// Older member; always empty, as credentials are shown once only.
	// Example: ""
	Key string `json:"key"`
	// Id of the organisation; filled in.
	// Example: "acme"
	OrgID string `json:"org_id"`
	// Id of the API that is asked for; filled in from the entry.
	// Example: "orders"
	ForAPI string `json:"for_api"`
	// Id of the policy that is asked for.
	// Example: "starter"
	ForPlan string `json:"for_plan"`
	// Ids of the policies that are asked for, where there are several.
	// Example: ["starter"]
	ApplyPolicies []string `json:"apply_policies"`
	// Ids of the policies that the key is to lose.
	// Example: ["trial"]
	RemovePolicies []string `json:"remove_policies"`
	// Id of the developer. Default: the one who calls.
	// Example: "5d1c7f0e2a"
	ByUser string `json:"by_user"`
	// Values of key_request_fields, and others; at most 50, of at most 4096 bytes each.
	// Example: {"use_case": "Orders of the shop"}
	Fields map[string]json.RawMessage `json:"fields"`
	// Whether the request is approved; filled in.
	Approved bool `json:"approved"`
	// Time of the request (RFC 3339); filled in.
	// Example: "2026-11-28T07:00:00Z"
	DateCreated string `json:"date_created"`
	// v2 if for_plan and apply_policies are ids of policies. Those of older requests may be ids of entries of the catalogue.
	// Example: "v2"
	Version string `json:"version"`
	// Secret or public key that verifies the tokens of the key that is asked for; never shown.
	// Example: ""
	JWTSecret string `json:"jwt_secret"`
	// Id of the client certificate that is to stand for the key.
	// Example: ""
	Certificate string `json:"certificate"`
	// OAuth client that is asked for, where the entry issues these.
	// Example: {"redirect_uri": "https://shop.example/done"}
	OAuthInfo OAuthInfo `json:"oauth_info"`
	// Developer who asks; filled in.
	// Example: {"email": "ada@example.com"}
	Developer *Developer `json:"portal_developer"`
	// Entry that offers the policy; filled in.
	// Example: {"name": "Orders"}
	Entry *Entry `json:"catalogue_entry"`
	// Entries that offer the policies, where there are several; filled in.
	// Example: [{"name": "Orders"}]
	Entries []Entry `json:"catalogues"`
	// Id of the key that is to change, or of the one that was issued.
	// Example: "9f86d081"
	KeyID string `json:"key_id,omitempty"`
	// State of the request; filled in.
	// Example: "pending"
	State string `json:"state,omitempty" oneof:"pending approved rejected"`
	// Reason of a rejection, at most 2000 bytes; filled in.
	// Example: "Please name the use case."
	Reason string `json:"reason,omitempty"`
	// User who decided; filled in.
	// Example: "operator@example.com"
	DecidedBy string `json:"decided_by,omitempty"`
	// Time of the decision (RFC 3339); filled in.
	// Example: "2026-11-28T07:00:00Z"
	DecidedAt string         `json:"decided_at,omitempty"`
	Unknown   object.Unknown `json:"-"`
}

// OAuthInfo describes the OAuth client that is requested.
type OAuthInfo struct {
	// URI that the client may be redirected to.
	// Example: "https://shop.example/done"
	RedirectURI string         `json:"redirect_uri"`
	Unknown     object.Unknown `json:"-"`
}

// kind is the set of top-level objects.
type kind interface {
	Developer | Entry | Configuration | KeyRequest
}

// Parse parses an object; the error is *definition.Problems.
func Parse[T kind](data []byte) (*T, error) {
	if fault := object.Check(data, maxSize); fault != nil {
		return nil, problems(*fault)
	}
	record := new(T)
	if faults := object.Decode(data, record); len(faults) > 0 {
		return nil, problems(faults...)
	}
	return record, nil
}

func problems(faults ...object.Fault) error {
	all := make(definition.Problems, 0, len(faults))
	for _, f := range faults {
		all = append(all, definition.Problem{Path: f.Path, Message: f.Message})
	}
	return &all
}

// Write returns an object as JSON, with the unknown members that Parse kept. Lists and maps
// are never null.
func Write[T kind](record *T) (json.RawMessage, error) {
	body, err := object.Marshal(filled(record))
	if err != nil {
		return nil, fmt.Errorf("writing a record of the portal: %w", err)
	}
	return body, nil
}
