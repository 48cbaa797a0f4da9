package site

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/credentials"
	"github.com/sluicegate/sluice/admin/usage"
)

func keyRoutes() []route {
	return []route{
		{"GET", "/keys", true, listKeys},
		{"GET", "/keys/{key}", true, showKey},
		{"POST", "/keys/{key}/rotate", true, rotateKey},
		{"POST", "/keys/{key}/revoke", true, revokeKey},
		{"POST", "/keys/{key}/remove", true, removePolicy},
	}
}

// keys returns the visitor's keys.
func (v *visit) keys() ([]credentials.View, error) {
	var found struct{ Data []credentials.View }
	err := v.get("/api/portal/me/keys?page_size=200", &found)
	return found.Data, err
}

// key returns the visitor's key that the path names.
func (v *visit) key() (*credentials.View, error) {
	all, err := v.keys()
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].ID == v.params["key"] {
			return &all[i], nil
		}
	}
	return nil, &fault{Status: fasthttp.StatusNotFound, Message: "You have no such key."}
}

func listKeys(v *visit) error {
	all, err := v.keys()
	if err != nil {
		return err
	}
	names, err := v.apiNames()
	if err != nil {
		return err
	}
	views := make([]keyRow, 0, len(all))
	for _, k := range all {
		views = append(views, keyRow{k, rowsOf(&k, names)})
	}
	return v.show(fasthttp.StatusOK, "keys", "My keys", views)
}

// keyRow is a key on the list.
type keyRow struct {
	credentials.View
	Rows []allowanceRow
}

// allowanceRow is how often a key may call an API, with the name of the API.
type allowanceRow struct {
	credentials.Allowance
	Name string
	Slug string // of the API's page; "" for none
}

// Limited reports whether there is a quota.
func (a *allowanceRow) Limited() bool { return a.Quota > 0 }

func rowsOf(k *credentials.View, names map[string]named) []allowanceRow {
	rows := make([]allowanceRow, 0, len(k.APIs))
	for _, a := range k.APIs {
		n := names[a.API]
		rows = append(rows, allowanceRow{a, cmp.Or(n.name, a.API), n.slug})
	}
	return rows
}

// named is the name of an API, and where the catalogue shows it.
type named struct{ name, slug string }

// apiNames returns the names of the APIs that the catalogue offers, by id.
func (v *visit) apiNames() (map[string]named, error) {
	offers, err := v.offersOf(map[string][]string{})
	names := make(map[string]named, len(offers))
	for _, o := range offers {
		if _, known := names[o.APIID]; !known {
			names[o.APIID] = named{cmp.Or(o.APIName, o.Name), o.ID}
		}
	}
	return names, err
}

// keyView is the page of one key.
type keyView struct {
	Key      *credentials.View
	Rows     []allowanceRow
	Usage    *chart
	Totals   usage.Numbers
	Refusals []refusal
	Known    bool // the refusals are known
	Rotate   *form
}

// refusal is a call that a gateway refused.
type refusal struct {
	At      string `json:"at"`
	API     string `json:"api_name"`
	Method  string `json:"method"`
	Path    string `json:"path"`
	Status  int    `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Limits  []struct {
		Kind      string `json:"kind"`
		Max       int64  `json:"max"`
		Period    string `json:"period"`
		Remaining int64  `json:"remaining"`
		ResetAt   string `json:"reset_at"`
	} `json:"limits"`
}

// Text says why the call was refused.
func (r *refusal) Text() string { return reasonText(r.Reason) }

// Rule says which rule refused the call: the limit that was used up, or what the caller
// was told.
func (r *refusal) Rule() string {
	for _, l := range r.Limits {
		if l.Remaining > 0 || !strings.HasPrefix(r.Reason, l.Kind) {
			continue
		}
		if period, err := time.ParseDuration(l.Period); err == nil && period > 0 {
			return fmt.Sprintf("%s calls in %s", number(l.Max), words(period))
		}
		return number(l.Max) + " calls"
	}
	return r.Message
}

// words writes a period as people do.
func words(d time.Duration) string {
	for _, unit := range []struct {
		of        time.Duration
		one, many string
	}{{24 * time.Hour, "a day", "days"}, {time.Hour, "an hour", "hours"}, {time.Minute, "a minute", "minutes"}, {time.Second, "a second", "seconds"}} {
		if n := d / unit.of; d%unit.of == 0 && n > 0 {
			if n == 1 {
				return unit.one
			}
			return fmt.Sprintf("%d %s", n, unit.many)
		}
	}
	return d.String()
}

func showKey(v *visit) error {
	view, err := v.keyView()
	if err != nil {
		return err
	}
	return v.show(fasthttp.StatusOK, "key", "Key "+short(view.Key.ID), view)
}

func (v *visit) keyView() (*keyView, error) {
	k, err := v.key()
	if err != nil {
		return nil, err
	}
	names, err := v.apiNames()
	if err != nil {
		return nil, err
	}
	view := &keyView{Key: k, Rows: rowsOf(k, names), Rotate: newForm(&field{Name: "grace", Label: "The present key stays valid for", Value: "24h"})}
	path := "/api/portal/me/keys/" + escape(k.ID)
	var report usage.Report
	if err := v.get(path+"/usage?days=7&step=day&group_by=reason", &report); err != nil {
		return nil, err
	}
	view.Usage, view.Totals = chartOf(&report, v.site.deps.Now()), report.Totals
	return view, v.addRefusals(view, path)
}

// addRefusals adds the last refusals of the key.
func (v *visit) addRefusals(view *keyView, path string) error {
	var found struct{ Data []refusal }
	err := v.get(path+"/refusals", &found)
	if f, ok := err.(*fault); ok && f.Status == fasthttp.StatusNotFound {
		return nil
	}
	view.Refusals, view.Known = found.Data, err == nil
	return err
}

// graces are the times for which a rotated key can stay valid.
var graces = []string{"0s", "1h", "24h", "168h"}

func rotateKey(v *visit) error {
	grace := v.value("grace")
	if !slices.Contains(graces, grace) {
		grace = "24h"
	}
	k, err := v.key()
	if err != nil {
		return err
	}
	var made credentials.Shown
	if err := v.post("/api/portal/me/keys/"+escape(k.ID)+"/rotate", map[string]string{"grace": grace}, &made); err != nil {
		return err
	}
	until := ""
	if grace != "0s" {
		until = v.site.deps.Now().Add(mustDuration(grace)).UTC().Format(timeFormat)
	}
	return v.showSecret(&secretView{Kind: k.Kind, Name: policyNames(k), Key: made.RawKey, Password: made.Password, Former: until, Back: "/keys/" + made.ID})
}

func policyNames(k *credentials.View) string {
	var names []string
	for _, p := range k.Policies {
		names = append(names, cmp.Or(p.Name, p.ID))
	}
	return strings.Join(names, ", ")
}

func revokeKey(v *visit) error {
	if v.value("sure") != "yes" {
		return &fault{Status: fasthttp.StatusBadRequest, Message: "Please tick that the key is to be revoked."}
	}
	if _, err := v.call(call{method: fasthttp.MethodDelete, path: "/api/portal/me/keys/" + escape(v.params["key"])}); err != nil {
		return err
	}
	return v.redirect("/keys?done=revoked")
}

// removePolicy asks for a plan to be taken from a key.
func removePolicy(v *visit) error {
	body := requestBody{Version: "v2", Key: v.params["key"], Remove: []string{v.value("policy")}}
	if err := v.post("/api/portal/me/requests", &body, nil); err != nil {
		return err
	}
	return v.redirect("/requests?done=submitted")
}

// secretView is a page that shows a secret once. It is the answer to the form that made
// the secret, and no browser keeps it.
type secretView struct {
	Kind     string // authToken, basic, oauth or webhook
	Name     string // what it is for
	Key      string
	Password string
	Former   string // until when the former one is valid; "" for not
	Back     string
}

func (v *visit) showSecret(view *secretView) error {
	if err := v.show(fasthttp.StatusOK, "secret", "Keep this now", view); err != nil {
		return err
	}
	v.http.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
	v.http.Response.Header.Set(fasthttp.HeaderPragma, "no-cache")
	return nil
}
