package site

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/catalogue"
	"github.com/sluicegate/sluice/admin/portal/credentials"
	"github.com/sluicegate/sluice/admin/portal/model"
)

func requestRoutes() []route {
	return []route{
		{"GET", "/request/{policy}", true, showRequest},
		{"POST", "/request/{policy}", true, sendRequest},
		{"GET", "/requests", true, listRequests},
		{"POST", "/requests/{id}/withdraw", true, withdrawRequest},
	}
}

// quoted writes a name as problems of the REST do.
func quoted(name string) string { return fmt.Sprintf("%.40q", name) }

// requestView is the form with which a developer asks for access.
type requestView struct {
	Offer  *catalogue.Offer
	Others []*catalogue.Offer // that the same request may name
	Chosen map[string]bool    // policies among them
	Keys   []credentials.View // that the plan may be added to
	Key    string             // the one that was chosen; "" for a new key
	Form   *form
}

// requestOf returns the form for a plan of the catalogue.
func (v *visit) requestOf(policy string) (*requestView, error) {
	offers, err := v.offersOf(url.Values{"policy_id": {policy}})
	if err != nil {
		return nil, err
	}
	if len(offers) == 0 {
		return nil, &fault{Status: fasthttp.StatusNotFound, Message: "This plan is not offered."}
	}
	view := &requestView{Offer: offers[0], Chosen: make(map[string]bool)}
	if view.Offer.EnableMultiSelection && view.Offer.AuthType != credentials.OAuth {
		if err := view.addOthers(v); err != nil {
			return nil, err
		}
	}
	keys, err := v.keys()
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if k.Kind == view.Offer.AuthType && k.State == "active" && k.Kind != credentials.OAuth && !hasPolicy(&k, policy) {
			view.Keys = append(view.Keys, k)
		}
	}
	view.Form = newForm(requestFields(view.Offer)...)
	return view, nil
}

// addOthers adds the offers that may be asked for in the same request.
func (r *requestView) addOthers(v *visit) error {
	all, err := v.offersOf(url.Values{})
	for _, o := range all {
		if o.PolicyID != "" && o.PolicyID != r.Offer.PolicyID && o.EnableMultiSelection && !o.IsKeyless && o.AuthType == r.Offer.AuthType && !o.RedirectOnKeyRequest {
			r.Others = append(r.Others, o)
		}
	}
	return err
}

func hasPolicy(k *credentials.View, policy string) bool {
	return slices.ContainsFunc(k.Policies, func(p credentials.Named) bool { return p.ID == policy })
}

// requestFields returns the fields that a request for an offer has.
func requestFields(o *catalogue.Offer) (fields []*field) {
	for _, name := range o.KeyRequestFields {
		fields = append(fields, &field{Name: "field." + name, Label: name, Required: true, Type: "area"})
	}
	if o.AuthType == credentials.OAuth {
		fields = append(fields,
			&field{Name: "redirect_uri", Label: "Redirect URI", Hint: "Where your application receives users, if it signs users in.", Member: "oauth_info.redirect_uri"},
			&field{Name: "field.oauth_app_description", Label: "What the application is", Member: "fields.oauth_app_description"},
			&field{Name: "field.oauth_use_case", Label: "What it is used for", Member: "fields.oauth_use_case"},
		)
	}
	return fields
}

func showRequest(v *visit) error {
	view, err := v.requestOf(v.params["policy"])
	if err != nil {
		return err
	}
	if o := view.Offer; o.RedirectOnKeyRequest && o.RedirectTo != "" {
		return v.leave(o.RedirectTo)
	}
	view.Key = v.query("key")
	return v.show(fasthttp.StatusOK, "request", "Request access", view)
}

// leave sends the browser to where keys are requested instead. The REST has checked that
// the address is of the portal or of a host that the configuration names.
func (v *visit) leave(to string) error {
	if strings.HasPrefix(to, "/") && v.site.base != "" && !strings.HasPrefix(to, v.site.base+"/") {
		to = v.site.base + to
	}
	v.http.Response.Header.Set(fasthttp.HeaderLocation, to)
	v.http.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
	v.http.SetStatusCode(fasthttp.StatusSeeOther)
	return nil
}

// requestBody is a key request as developers send it.
type requestBody struct {
	Plan     string            `json:"for_plan,omitempty"`
	Policies []string          `json:"apply_policies,omitempty"`
	Remove   []string          `json:"remove_policies,omitempty"`
	Key      string            `json:"key_id,omitempty"`
	Version  string            `json:"version"`
	Fields   map[string]string `json:"fields,omitempty"`
	OAuth    *oauthBody        `json:"oauth_info,omitempty"`
}

type oauthBody struct {
	RedirectURI string `json:"redirect_uri"`
}

func sendRequest(v *visit) error {
	view, err := v.requestOf(v.params["policy"])
	if err != nil {
		return err
	}
	view.Form.take(v)
	view.Key = v.value("key")
	body := requestBody{Version: "v2", Fields: make(map[string]string), Key: view.Key}
	policies := []string{view.Offer.PolicyID}
	for _, one := range v.values("also") {
		if !slices.Contains(policies, one) {
			policies = append(policies, one)
			view.Chosen[one] = true
		}
	}
	if body.Plan = view.Offer.PolicyID; len(policies) > 1 {
		body.Policies = policies
	}
	for _, f := range view.Form.Order {
		if name, found := strings.CutPrefix(f.Name, "field."); found && f.Value != "" {
			body.Fields[name] = f.Value
		}
	}
	if uri := v.value("redirect_uri"); uri != "" {
		body.OAuth = &oauthBody{uri}
	}
	var answer struct{ Meta *model.Credential }
	if err := v.post("/api/portal/me/requests", &body, &answer); err != nil {
		status, err := view.Form.refused(err)
		if err != nil {
			return err
		}
		return v.show(status, "request", "Request access", view)
	}
	if answer.Meta == nil {
		return v.redirect("/requests?done=submitted")
	}
	return v.showSecret(&secretView{Kind: view.Offer.AuthType, Name: view.Offer.Name, Key: answer.Meta.RawKey, Password: answer.Meta.Password, Back: "/keys"})
}

// ownRequest is a request of the visitor.
type ownRequest struct {
	ID      string                     `json:"id"`
	Plan    string                     `json:"for_plan"`
	Apply   []string                   `json:"apply_policies"`
	Remove  []string                   `json:"remove_policies"`
	State   string                     `json:"state"`
	Reason  string                     `json:"reason"`
	Created string                     `json:"date_created"`
	Decided string                     `json:"decided_at"`
	KeyID   string                     `json:"key_id"`
	Fields  map[string]json.RawMessage `json:"fields"`
	Entry   *struct {
		Name string `json:"name"`
	} `json:"catalogue_entry"`
}

// Name says what the request is for.
func (r *ownRequest) Name() string {
	switch {
	case r.Entry != nil && r.Entry.Name != "" && len(r.Apply) < 2:
		return r.Entry.Name
	case len(r.Apply) > 0:
		return strings.Join(r.Apply, ", ")
	case r.Plan != "":
		return r.Plan
	}
	return "removal of " + strings.Join(r.Remove, ", ")
}

// requestsView is the list of the visitor's requests.
type requestsView struct {
	Requests []*ownRequest
	Pager    *pager
}

func listRequests(v *visit) error {
	var found struct {
		Data  []*ownRequest
		Pages int64
	}
	n := v.pageNumber()
	if err := v.get(fmt.Sprintf("/api/portal/me/requests?page_size=20&p=%d", n), &found); err != nil {
		return err
	}
	return v.show(fasthttp.StatusOK, "requests", "My requests", &requestsView{found.Data, newPager(v, "/requests", n, found.Pages)})
}

func withdrawRequest(v *visit) error {
	if _, err := v.call(call{method: fasthttp.MethodDelete, path: "/api/portal/me/requests/" + escape(v.params["id"])}); err != nil {
		return err
	}
	return v.redirect("/requests?done=withdrawn")
}
