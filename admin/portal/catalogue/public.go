package catalogue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
)

// An Offer is an entry as developers see it, without details of the API's operation.
type Offer struct {
	// Id of the catalogue entry.
	ID string `json:"id"`
	// Name of the entry.
	Name string `json:"name"`
	// One or two sentences about the API, as text.
	ShortDescription string `json:"short_description"`
	// Longer description of the API, as text.
	LongDescription string `json:"long_description"`
	// Version of the API that the entry is about; empty: not said.
	Version string `json:"version"`
	// Further fields of the entry, by name.
	Fields map[string]string `json:"fields"`
	// Kind of credential that callers need: authToken, basic or oauth.
	AuthType string `json:"auth_type"`
	// Header field in which gateways look for the credential.
	AuthHeader string `json:"auth_header"`
	// Whether the API asks for no key, so that there is nothing to request.
	IsKeyless bool `json:"is_keyless"`

	// Id of the API that the entry offers.
	APIID string `json:"api_id"`
	// Name of that API.
	APIName string `json:"api_name"`
	// Host that the API is served on; empty: every host of the gateway.
	Domain string `json:"domain"`
	// Path that the API is served below.
	ListenPath string `json:"listen_path"`
	// Whether the API has a GraphQL schema and can be tried in the playground.
	IsGraphQL bool `json:"is_graphql"`

	// Whether the API serves event streams; GET /api/portal/public/catalogue/{id}/routes lists its
	// routes.
	HasStreams bool `json:"has_streams"`

	// Types of events of the API's streams, which webhooks of developers can subscribe to.
	Events []string `json:"events"`

	// Id of the policy that a key request names in for_plan.
	PolicyID string `json:"policy_id"`
	// Name of that policy.
	PolicyName string `json:"policy_name"`
	// Limits that a key for the entry has; null: there is no policy.
	Limits *Limits `json:"limits"`

	// Whether there is documentation.
	Documented bool `json:"documented"`

	// Names of the fields of the form for key requests.
	KeyRequestFields []string `json:"key_request_fields"`
	// Whether key requests wait for a decision of an operator; otherwise credentials are issued at
	// once.
	RequireKeyApproval bool `json:"require_key_approval"`
	// Whether developers who ask for a key are sent to redirect_to.
	RedirectOnKeyRequest bool `json:"redirect_on_key_request"`
	// Path of the site of the portal, or URL, that they are sent to; empty: none.
	RedirectTo string `json:"redirect_to"`
	// Whether a key request may name several policies.
	EnableMultiSelection bool `json:"enable_multi_selection"`
}

// offerList is one page of offers.
type offerList struct {
	// Offers of the page, in the order of the catalogue.
	Data []*Offer `json:"Data"`
	// Number of pages.
	Pages int64 `json:"Pages"`
}

// PublicConfiguration is the part of a configuration that the pages of a portal need.
type PublicConfiguration struct {
	// Id of the organisation that the portal belongs to.
	OrgID string `json:"org_id"`
	// Names of the fields of the sign-up form besides address and password.
	SignupFields []string `json:"signup_fields"`
	// Names of the fields of the form for key requests.
	KeyRequestFields []string `json:"key_request_fields"`
	// Whether key requests wait for a decision of an operator; otherwise credentials are issued at
	// once.
	RequireKeyApproval bool `json:"require_key_approval"`
	// Whether developers who ask for a key are sent to redirect_to.
	RedirectOnKeyRequest bool `json:"redirect_on_key_request"`
	// Path of the site of the portal, or URL, that they are sent to; empty: none.
	RedirectTo string `json:"redirect_to"`
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
	// OAuth clients that one developer may have; 0 and -1 are no limit.
	OAuthUsageLimit int64 `json:"oauth_usage_limit"`
}

// visitor returns the organisation of a call that needs no credential, and reports whether
// one of its developers made the call.
func (s *Service) visitor(ctx context.Context, c *rest.Call) (org string, developer bool, err error) {
	var who rest.Principal
	if credential := rest.CredentialOf(c.HTTP); len(credential) > 0 {
		who, err = s.identify(ctx, credential)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return "", false, err
		}
	}
	org = cmp.Or(c.Query("org_id"), who.Org)
	if org == "" {
		org, err = s.Home(ctx)
		return org, false, err
	}
	if org == who.Org {
		return org, who.Role == rest.Developer, nil
	}
	exists, err := s.store.OrgExists(ctx, org)
	if err == nil && !exists {
		err = rest.NotFound("org_id: there is no such organisation")
	}
	return org, false, err
}

// VisitorOrg returns the organisation of a call that needs no credential: the one that it
// names, that of the caller, or that of the portal.
func (s *Service) VisitorOrg(ctx context.Context, c *rest.Call) (string, error) {
	org, _, err := s.visitor(ctx, c)
	return org, err
}

// admit is visitor for routes that a portal may restrict to its developers.
func (s *Service) admit(ctx context.Context, c *rest.Call) (org string, config *model.Configuration, err error) {
	org, developer, err := s.visitor(ctx, c)
	if err != nil {
		return "", nil, err
	}
	config, err = s.Configuration(ctx, org)
	if err == nil && config.CatalogueLoginOnly && !developer {
		err = rest.Refuse(fasthttp.StatusUnauthorized, "Not authorised: only developers who are signed in see this catalogue")
	}
	return org, config, err
}

func (s *Service) publicConfiguration(ctx context.Context, c *rest.Call) (any, error) {
	org, _, err := s.visitor(ctx, c)
	if err != nil {
		return nil, err
	}
	k, err := s.Configuration(ctx, org)
	if err != nil {
		return nil, err
	}
	return PublicConfiguration{
		OrgID: org, SignupFields: list(k.SignupFields), KeyRequestFields: list(k.KeyRequestFields),
		RequireKeyApproval: k.RequireKeyApproval, RedirectOnKeyRequest: k.RedirectOnKeyRequest, RedirectTo: k.RedirectTo,
		EnableMultiSelection: k.EnableMultiSelection, DisableLogin: k.DisableLogin, DisableSignup: k.DisableSignup,
		DisableAutoLogin: k.DisableAutoLogin, DisableVerification: k.DisableVerification, CatalogueLoginOnly: k.CatalogueLoginOnly, OAuthUsageLimit: k.OAuthUsageLimit,
	}, nil
}

func (s *Service) publicCatalogue(ctx context.Context, c *rest.Call) (any, error) {
	page, err := c.Page(false)
	if err != nil {
		return nil, err
	}
	org, config, err := s.admit(ctx, c)
	if err != nil {
		return nil, err
	}
	rows, total, err := s.store.ListOffers(ctx, org, store.CatalogueFilter{Prefix: c.Query("q"), API: c.Query("api_id"), Policy: c.Query("policy_id")}, page)
	if err != nil {
		return nil, err
	}
	offers, err := s.offers(ctx, org, config, rows)
	return offerList{Data: offers, Pages: rest.Pages(total, page)}, err
}

func (s *Service) publicEntry(ctx context.Context, c *rest.Call) (any, error) {
	org, config, err := s.admit(ctx, c)
	if err != nil {
		return nil, err
	}
	row, err := s.store.Offer(ctx, org, c.Param("id"))
	if err != nil {
		return nil, rest.Missing(err, noObject)
	}
	offers, err := s.offers(ctx, org, config, []store.CatalogueEntry{row})
	if err != nil {
		return nil, err
	}
	return offers[0], nil
}

func (s *Service) publicDocumentation(ctx context.Context, c *rest.Call) (any, error) {
	org, _, err := s.admit(ctx, c)
	if err != nil {
		return nil, err
	}
	row, err := s.store.Offer(ctx, org, c.Param("id"))
	if err != nil {
		return nil, rest.Missing(err, noObject)
	}
	if row.Document == "" {
		return nil, rest.NotFound("The entry has no documentation")
	}
	shown, err := s.documents.Show(ctx, org, row.Document, row.APIID)
	if err != nil {
		return nil, rest.Missing(err, "The entry has no documentation")
	}
	if err := s.cut(ctx, org, &row, shown); err != nil {
		return nil, err
	}
	return writeDocumentation(shown)
}

// Offered returns an entry that developers see.
func (s *Service) Offered(ctx context.Context, org, id string) (*model.Entry, error) {
	row, err := s.store.Offer(ctx, org, id)
	if err != nil {
		return nil, rest.Missing(err, noObject)
	}
	return entryOf(&row)
}

// offers returns entries as developers see them.
func (s *Service) offers(ctx context.Context, org string, config *model.Configuration, rows []store.CatalogueEntry) ([]*Offer, error) {
	apis, policies, err := s.store.OfferTargets(ctx, org, rows)
	if err != nil {
		return nil, err
	}
	all := make([]*Offer, 0, len(rows))
	for i := range rows {
		e, err := entryOf(&rows[i])
		if err != nil {
			return nil, err
		}
		o := offerOf(e, Override(config, e))
		if api := apis[e.APIID]; api != nil {
			o.APIName, o.Domain, o.ListenPath, o.IsGraphQL = api.Name, api.Domain, api.ListenPath, api.Kind == "graphql"
			o.Events, o.HasStreams = api.Events, api.Streams
			if o.AuthHeader, err = authHeader(api, o.AuthType); err != nil {
				return nil, err
			}
		}
		if policy := policies[e.PolicyID]; policy != nil {
			o.PolicyName = policy.Name
			if o.Limits, err = limitsOf(policy, e.APIID); err != nil {
				return nil, fmt.Errorf("catalogue entry %s: %w", e.ID, err)
			}
		}
		all = append(all, o)
	}
	return all, nil
}

// authHeader returns the header field in which an API has a kind of credential.
func authHeader(row *store.OfferedAPI, kind string) (string, error) {
	api := new(definition.API)
	if err := json.Unmarshal(row.Auth, api); err != nil {
		return "", fmt.Errorf("reading where API %s has credentials: %w", row.ID, err)
	}
	return api.Place(kind).Header(), nil
}

func offerOf(e *model.Entry, config *model.Configuration) *Offer {
	fields := e.Fields
	if fields == nil {
		fields = map[string]string{}
	}
	return &Offer{
		ID: e.ID, Name: e.Name, ShortDescription: e.ShortDescription, LongDescription: e.LongDescription,
		Version: e.Version, Fields: fields, AuthType: cmp.Or(e.AuthType, "authToken"), AuthHeader: "Authorization", IsKeyless: e.IsKeyless,
		APIID: e.APIID, Events: []string{}, PolicyID: e.PolicyID, Documented: e.Documentation != "",
		KeyRequestFields: list(config.KeyRequestFields), RequireKeyApproval: config.RequireKeyApproval,
		RedirectOnKeyRequest: config.RedirectOnKeyRequest, RedirectTo: config.RedirectTo,
		EnableMultiSelection: config.EnableMultiSelection,
	}
}

// list returns a copy that is never nil, for JSON.
func list(names []string) []string { return append([]string{}, names...) }
