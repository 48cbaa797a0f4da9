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
	ID              string              `json:"id"`
	Email           string              `json:"email"`
	DateCreated     string              `json:"date_created"` // RFC 3339, as all times here
	Inactive        bool                `json:"inactive"`
	OrgID           string              `json:"org_id"`
	Keys            map[string][]string `json:"keys"`          // policies by key id
	Subscriptions   map[string]string   `json:"subscriptions"` // key id by policy
	Fields          map[string]string   `json:"fields"`
	Nonce           string              `json:"nonce"`
	SSOKey          string              `json:"sso_key"`
	OAuthClients    map[string][]Client `json:"oauth_clients"` // by policy
	PasswordMaxDays int64               `json:"password_max_days"`
	PasswordUpdated string              `json:"password_updated,omitempty"` // "": there is no password
	PasswordHistory []string            `json:"PWHistory"`                  // always empty: hashes are not shown
	LastLogin       string              `json:"last_login_date,omitempty"`  // "": never
	Verified        *bool               `json:"verified,omitempty"`         // the address is verified; nil in a body: unchanged
	Unknown         object.Unknown      `json:"-"`
}

// A Client is an OAuth client of a developer.
type Client struct {
	ClientID       string         `json:"client_id"`
	Secret         string         `json:"secret"` // shown once, when it is made
	RedirectURI    string         `json:"redirect_uri"`
	AppDescription string         `json:"app_description"`
	UseCase        string         `json:"use_case"`
	DateCreated    string         `json:"date_created"`
	Unknown        object.Unknown `json:"-"`
}

// An Entry offers an API with a policy in a catalogue.
type Entry struct {
	ID               string            `json:"id,omitempty"`
	Name             string            `json:"name"`
	ShortDescription string            `json:"short_description"`
	LongDescription  string            `json:"long_description"`
	Show             bool              `json:"show"`
	APIID            string            `json:"api_id"`
	PolicyID         string            `json:"policy_id"`
	Documentation    string            `json:"documentation"` // id of a document; "" for none
	Version          string            `json:"version"`
	IsKeyless        bool              `json:"is_keyless"`
	Config           *Configuration    `json:"config,omitempty"` // replaces the organisation's if its override is true
	Fields           map[string]string `json:"fields"`
	AuthType         string            `json:"auth_type"` // authToken, basic or oauth
	Unknown          object.Unknown    `json:"-"`
}

// A Configuration is the configuration of an organisation's portal.
type Configuration struct {
	ID                   string         `json:"id"`
	OrgID                string         `json:"org_id"`
	SignupFields         []string       `json:"signup_fields"`
	KeyRequestFields     []string       `json:"key_request_fields"`
	RequireKeyApproval   bool           `json:"require_key_approval"`
	RedirectOnKeyRequest bool           `json:"redirect_on_key_request"`
	RedirectTo           string         `json:"redirect_to"`    // a path of the portal's own site, or a URL of one of RedirectHosts
	RedirectHosts        []string       `json:"redirect_hosts"` // hosts, with a port where it is not the usual one
	EnableMultiSelection bool           `json:"enable_multi_selection"`
	DisableLogin         bool           `json:"disable_login"`
	DisableSignup        bool           `json:"disable_signup"`
	DisableAutoLogin     bool           `json:"disable_auto_login"`
	DisableVerification  bool           `json:"disable_verification"` // addresses of sign-ups are not verified
	CatalogueLoginOnly   bool           `json:"catalogue_login_only"`
	OAuthUsageLimit      int64          `json:"oauth_usage_limit"` // OAuth clients of one developer, or, where an entry says so, of one developer for its policy; -1 and 0: no limit
	Email                string         `json:"email"`             // of the operator of the portal; "" for none
	MailOptions          MailOptions    `json:"mail_options"`
	Override             bool           `json:"override"`
	HashKeys             bool           `json:"HashKeys"`
	Events               EventOptions   `json:"event_options"`
	Unknown              object.Unknown `json:"-"`
}

// EventOptions are the targets of an organisation's events.
type EventOptions struct {
	API        EventTarget    `json:"api_event"`
	Key        EventTarget    `json:"key_event"`
	KeyRequest EventTarget    `json:"key_request_event"`
	Unknown    object.Unknown `json:"-"`
}

// An EventTarget is the target of events of one kind.
type EventTarget struct {
	Webhook string         `json:"webhook"` // a URL; "" for none
	Email   string         `json:"email"`   // an address; "" for none
	Unknown object.Unknown `json:"-"`
}

// MailOptions are the sender and the texts of letters.
type MailOptions struct {
	FromName  string         `json:"mail_from_name"`
	FromEmail string         `json:"mail_from_email"`
	Copy      MailCopies     `json:"email_copy"`
	Unknown   object.Unknown `json:"-"`
}

// MailCopies are the texts of the letters.
type MailCopies struct {
	Welcome       MailCopy       `json:"welcome_email"`
	Key           MailCopy       `json:"key_email"`
	ResetPassword MailCopy       `json:"reset_password_email"`
	Unknown       object.Unknown `json:"-"`
}

// A MailCopy is the text of one letter.
type MailCopy struct {
	Enabled       bool           `json:"enabled"`
	Subject       string         `json:"subject"`
	Body          string         `json:"body"`
	SignOff       string         `json:"sign_off"`
	HideTokenData bool           `json:"hide_token_data"`
	Unknown       object.Unknown `json:"-"`
}

// A KeyRequest asks for a credential for some policies.
type KeyRequest struct {
	ID             string                     `json:"id"`
	Key            string                     `json:"key"` // always ""
	OrgID          string                     `json:"org_id"`
	ForAPI         string                     `json:"for_api"`
	ForPlan        string                     `json:"for_plan"`
	ApplyPolicies  []string                   `json:"apply_policies"`
	RemovePolicies []string                   `json:"remove_policies"`
	ByUser         string                     `json:"by_user"`
	Fields         map[string]json.RawMessage `json:"fields"`
	Approved       bool                       `json:"approved"`
	DateCreated    string                     `json:"date_created"`
	Version        string                     `json:"version"`
	JWTSecret      string                     `json:"jwt_secret"`
	Certificate    string                     `json:"certificate"`
	OAuthInfo      OAuthInfo                  `json:"oauth_info"`
	Developer      *Developer                 `json:"portal_developer"`
	Entry          *Entry                     `json:"catalogue_entry"`
	Entries        []Entry                    `json:"catalogues"`
	KeyID          string                     `json:"key_id,omitempty"` // the key to be changed, or the one that was issued
	State          string                     `json:"state,omitempty"`  // pending, approved or rejected
	Reason         string                     `json:"reason,omitempty"` // of the rejection
	DecidedBy      string                     `json:"decided_by,omitempty"`
	DecidedAt      string                     `json:"decided_at,omitempty"`
	Unknown        object.Unknown             `json:"-"`
}

// OAuthInfo describes the OAuth client that is requested.
type OAuthInfo struct {
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
