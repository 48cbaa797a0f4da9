package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/certs"
)

// Clock differences matter because quotas and keys expire by the clock.
const (
	skewed = 2 * time.Second
	wrong  = 30 * time.Second
)

func (d *Doctor) skew(check string, ahead time.Duration) {
	state, apart := OK, ahead.Abs().Round(100*time.Millisecond)
	switch {
	case apart > wrong:
		state = Fail
	case apart > skewed:
		state = Warn
	}
	d.add(state, check, fmt.Sprintf("%s apart from this machine's", apart), "synchronise the clocks (chronyd, systemd-timesyncd): keys, quotas and tokens end by them")
}

// admin checks the admin's health and what it reports about others.
func (d *Doctor) admin(ctx context.Context) {
	if d.Admin == nil {
		d.add(Warn, "admin", "not asked: no access key is known", "set SLUICE_TOKEN, or run doctor as the user that sluice up runs as")
		return
	}
	base := d.Admin.Base()
	if d.Within && d.Config.Admin.TLS.On() { // its own certificate says nothing about how others reach it
		d.answers["admin"] = true
		d.add(OK, "admin", base+" answers", "")
		d.asked(ctx)
		return
	}
	resp, ahead, err := d.get(ctx, d.ToAdmin, base+"/readyz")
	switch {
	case err != nil:
		d.add(Fail, "admin", base+" cannot be reached: "+cause(bare(err)).Error(), "start it (sluice up, or sluice admin), or name another with --server")
		return
	case resp.StatusCode != http.StatusOK:
		d.answers["admin"] = true
		d.add(Fail, "admin", fmt.Sprintf("%s answers %s", base, resp.Status), "GET "+base+"/readyz says what it lacks; most often its database")
		return
	}
	d.answers["admin"] = true
	d.add(OK, "admin", base+" is ready, and so is its database", "")
	d.skew("clock of the admin", ahead)
	d.asked(ctx)
}

// adminOfGateway checks that a gateway of this machine reaches its admin, with the
// authorities and the certificate that it has for this.
func (d *Doctor) adminOfGateway(ctx context.Context) {
	g := d.Config.Gateway
	if g.AdminURL == "" {
		return
	}
	const check, remedy = "gateway.admin_url", "compare gateway.admin_ca and gateway.admin_cert with the admin's certificate and admin.tls.client_ca, and look whether the admin runs"
	caller, err := certs.NewCaller(certs.CallerOptions{CA: g.AdminCA, Pair: certs.Pair{Cert: g.AdminCert, Key: g.AdminKey}})
	if err != nil {
		d.add(Fail, check, "not asked: "+err.Error(), "name valid files in gateway.admin_ca, gateway.admin_cert and gateway.admin_key")
		return
	}
	transport := caller.Transport()
	defer transport.CloseIdleConnections()
	resp, _, err := d.get(ctx, transport, strings.TrimSuffix(g.AdminURL, "/")+"/readyz")
	switch {
	case err != nil:
		d.add(Fail, check, g.AdminURL+" cannot be reached: "+cause(bare(err)).Error(), remedy)
	case resp.StatusCode != http.StatusOK:
		d.add(Fail, check, fmt.Sprintf("%s answers %s", g.AdminURL, resp.Status), "GET "+g.AdminURL+"/readyz says what it lacks; most often its database")
	default:
		d.add(OK, check, g.AdminURL+" is ready", "")
	}
}

// asked checks what the admin knows of others.
func (d *Doctor) asked(ctx context.Context) {
	for _, look := range []func(context.Context) error{d.gateways, d.stored, d.acme, d.schemas, d.calls, d.legacyKeys} {
		if err := look(ctx); err != nil {
			d.add(Fail, "admin", err.Error(), "use the access key of a user of this admin: SLUICE_TOKEN")
			return
		}
	}
}

func bare(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

func (d *Doctor) ask(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	answer, err := d.Admin.Call(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, into)
}

// gateways checks the gateways that report to the admin.
func (d *Doctor) gateways(ctx context.Context) error {
	var view struct {
		Gateways []struct {
			Name     string    `json:"name"`
			Revision string    `json:"revision"`
			Error    string    `json:"error"`
			SeenAt   time.Time `json:"seen_at"`
			UpToDate bool      `json:"up_to_date"`
		} `json:"gateways"`
		Revision string `json:"revision"`
	}
	if err := d.ask(ctx, "/api/gateways", &view); err != nil {
		return err
	}
	if len(view.Gateways) == 0 {
		d.add(Warn, "gateways", "the admin hears of none", "start one: sluice gateway --admin-url URL")
	}
	for _, g := range view.Gateways {
		check := "gateway " + g.Name
		quiet := d.Now().Sub(g.SeenAt).Round(time.Second)
		switch {
		case g.Error != "":
			d.add(Fail, check, "does not serve revision "+view.Revision+" as written: "+g.Error, "change what it names, or roll back: sluice config rollback")
		case quiet > 2*time.Minute:
			d.add(Warn, check, fmt.Sprintf("was last heard of %s ago", quiet), "look whether it runs and reaches the admin; a gateway that is gone for good is forgotten in time")
		case !g.UpToDate:
			d.add(Warn, check, "serves revision "+g.Revision+" and not yet "+view.Revision, "wait a few seconds and look again; its log says why it does not")
		default:
			d.add(OK, check, "serves revision "+g.Revision, "")
		}
	}
	return nil
}

// stored checks the certificates in the admin's store.
func (d *Doctor) stored(ctx context.Context) error {
	var view struct {
		Certificates []struct {
			Fingerprint string    `json:"fingerprint"`
			Subject     string    `json:"subject"`
			NotBefore   time.Time `json:"not_before"`
			NotAfter    time.Time `json:"not_after"`
		} `json:"certificates"`
	}
	if err := d.ask(ctx, "/api/certs?p=1&page_size=500", &view); err != nil {
		return err
	}
	for _, c := range view.Certificates {
		d.expiry("certificate", fmt.Sprintf("%s (%.12s)", c.Subject, c.Fingerprint), c.NotBefore, c.NotAfter)
	}
	return nil
}

// acme checks the certificates that gateways obtain by ACME.
func (d *Doctor) acme(ctx context.Context) error {
	var view struct {
		Certificates []struct {
			Domain    string     `json:"domain"`
			NotBefore *time.Time `json:"not_before"`
			NotAfter  *time.Time `json:"not_after"`
			Failures  int        `json:"failures"`
			Error     string     `json:"error"`
			NextTry   time.Time  `json:"next_try"`
		} `json:"certificates"`
	}
	if err := d.ask(ctx, "/api/acme", &view); err != nil {
		return err
	}
	for _, c := range view.Certificates {
		check := "ACME certificate of " + c.Domain
		if c.NotBefore != nil && c.NotAfter != nil && c.Failures == 0 {
			d.expiry("ACME certificate", c.Domain, *c.NotBefore, *c.NotAfter)
			continue
		}
		status, said := Fail, "there is none"
		if c.NotAfter != nil && d.Now().Before(*c.NotAfter) {
			status, said = Warn, "the one in use ends on "+c.NotAfter.UTC().Format(time.DateTime)
		}
		d.add(status, check, fmt.Sprintf("%s; %d attempts failed: %s", said, c.Failures, c.Error),
			"see that the domain leads to the gateways, and its ports 443 and 80 to gateway.tls.listen and gateway.listen; they try again at "+c.NextTry.UTC().Format(time.DateTime))
	}
	return nil
}

// legacyKeys checks for keys that are stored under hashes that can be inverted.
func (d *Doctor) legacyKeys(ctx context.Context) error {
	var view struct {
		Keys    int64            `json:"keys"`
		ByHash  map[string]int64 `json:"by_hash"`
		Allowed []string         `json:"legacy_hashes"`
	}
	if err := d.ask(ctx, "/api/keys/legacy_hashes", &view); err != nil {
		return err
	}
	const check = "legacy hashes"
	var names []string
	for _, name := range slices.Sorted(maps.Keys(view.ByHash)) {
		names = append(names, fmt.Sprintf("%d under %s", view.ByHash[name], name))
	}
	listed := strings.Join(view.Allowed, ", ")
	switch {
	case view.Keys == 0 && listed == "":
		d.add(OK, check, "no key is under one", "")
	case view.Keys == 0:
		d.add(Warn, check, "no key is under one, but keys.legacy_hashes lists "+listed, "empty keys.legacy_hashes of the admin and of all gateways: each hash costs a look-up for every unknown key")
	case listed == "":
		d.add(Warn, check, fmt.Sprintf("%s; they open nothing, as keys.legacy_hashes is empty", strings.Join(names, ", ")), "delete them, or list their hash while their owners change to new keys")
	default:
		d.add(Warn, check, fmt.Sprintf("%s; a token with the same hash as one of these is easily found", strings.Join(names, ", ")), "replace them (sluice key rotate), then empty keys.legacy_hashes")
	}
	return nil
}

// schemas checks that the schemas of GraphQL APIs are synchronised.
func (d *Doctor) schemas(ctx context.Context) error {
	var view struct {
		APIs []struct {
			ID         string `json:"api_id"`
			Definition struct {
				GraphQL struct {
					Enabled bool `json:"enabled"`
				} `json:"graphql"`
			} `json:"api_definition"`
		} `json:"apis"`
	}
	if err := d.ask(ctx, "/api/apis?p=1&page_size=500", &view); err != nil {
		return err
	}
	for _, api := range view.APIs {
		if !api.Definition.GraphQL.Enabled {
			continue
		}
		var status struct {
			Interval int64      `json:"interval"`
			Error    string     `json:"last_sync_error"`
			Failing  *time.Time `json:"failing_since"`
		}
		if err := d.ask(ctx, "/api/apis/"+url.PathEscape(api.ID)+"/schema/status", &status); err != nil {
			return err
		}
		check := "schema of " + api.ID
		switch {
		case status.Error != "":
			d.add(Warn, check, "could not be fetched: "+status.Error, "look at the upstream; the stored schema goes on being used")
		case status.Interval > 0:
			d.add(OK, check, fmt.Sprintf("fetched every %s", time.Duration(status.Interval)*time.Second), "")
		}
	}
	return nil
}

// Calls of an API are failing when there are at least someCalls of them within
// recently, and at least a twentieth got a status from 500 on; they fail when half did.
const (
	recently  = 15 * time.Minute
	someCalls = 5
)

// outcomes are the calls of one API.
type outcomes struct {
	all, failed int64
	most        int64  // of the failed ones, with one status and reason
	as          string // that status and reason
}

// calls checks that the calls of APIs do not fail.
func (d *Doctor) calls(ctx context.Context) error {
	var view struct {
		Data []struct {
			API    string `json:"api_id"`
			Status int    `json:"status"`
			Reason string `json:"reason"`
			Hits   int64  `json:"hits"`
		}
	}
	since := d.Now().Add(-recently).UTC().Format(time.RFC3339)
	if err := d.ask(ctx, "/api/usage?group_by=api,status,reason&p=1&page_size=500&from="+url.QueryEscape(since), &view); err != nil {
		return err
	}
	byAPI := make(map[string]*outcomes)
	for _, row := range view.Data {
		o := byAPI[row.API]
		if o == nil {
			o = new(outcomes)
			byAPI[row.API] = o
		}
		if o.all += row.Hits; row.Status < http.StatusInternalServerError {
			continue
		}
		if o.failed += row.Hits; row.Hits > o.most {
			o.most, o.as = row.Hits, strings.TrimSpace(fmt.Sprint(row.Status, " ", row.Reason))
		}
	}
	for _, id := range sorted(byAPI) {
		o := byAPI[id]
		check, state := "calls of "+id, OK
		switch {
		case o.all < someCalls:
			continue
		case 2*o.failed >= o.all:
			state = Fail
		case 20*o.failed >= o.all:
			state = Warn
		}
		detail := fmt.Sprintf("%d of %d failed in the last %.0f minutes", o.failed, o.all, recently.Minutes())
		if o.failed > 0 {
			detail += ", most with " + o.as
		}
		d.add(state, check, detail, "look at its upstream: sluice explain --id ID, with the X-Request-Id of a failed call, names its address and the cause")
	}
	return nil
}

// gateway checks the health of this machine's gateway.
func (d *Doctor) gateway(ctx context.Context) {
	if d.Gateway == "" {
		return
	}
	resp, ahead, err := d.get(ctx, d.ToGateway, d.Gateway+"/hello")
	if refused, ok := errors.AsType[*net.OpError](err); ok && refused.Op == "remote error" { // gateway.tls.client_ca
		d.answers["gateway"] = true
		d.add(OK, "gateway", d.Gateway+" answers, and requires a client certificate", "")
		return
	}
	switch {
	case err != nil:
		d.add(Warn, "gateway", d.Gateway+" cannot be reached: "+cause(bare(err)).Error(), "start it (sluice up, or sluice gateway), if one is to run here")
		return
	case resp.StatusCode != http.StatusOK:
		d.add(Warn, "gateway", fmt.Sprintf("%s answers %s to /hello", d.Gateway, resp.Status), "look whether something else listens there")
		return
	}
	d.answers["gateway"] = true
	d.components(ctx)
	d.skew("clock of the gateway", ahead)
}

// components reports the gateway's view of its stores.
func (d *Doctor) components(ctx context.Context) {
	var view struct {
		Details map[string]struct {
			Status string `json:"status"`
			Output string `json:"output"`
		} `json:"details"`
	}
	answer, err := d.read(ctx, d.ToGateway, d.Gateway+"/hello")
	if err == nil {
		err = json.Unmarshal(answer, &view)
	}
	if err != nil {
		d.add(Warn, "gateway", "what it says of itself cannot be read: "+bare(err).Error(), "look at GET "+d.Gateway+"/hello")
		return
	}
	d.add(OK, "gateway", d.Gateway+" answers", "")
	for _, name := range sorted(view.Details) {
		one := view.Details[name]
		state := map[string]State{"pass": OK, "warn": Warn}[one.Status]
		if state == "" {
			state = Fail
		}
		detail := one.Status
		if one.Output != "" {
			detail = one.Output
		}
		d.add(state, "gateway: "+name, detail, "the log of the gateway says more; look whether what it needs runs and is reached")
	}
}
