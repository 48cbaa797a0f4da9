// Package doctor checks what a gateway and an admin depend on, and suggests remedies.
package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/config"
)

// A State is the result of a check.
type State string

// The states.
const (
	OK   State = "ok"
	Warn State = "warn"
	Fail State = "fail"
)

// A Finding is the result of one check.
type Finding struct {
	State  State  `json:"state"`
	Check  string `json:"check"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"` // what to do, unless OK
}

// An Admin is a client of an admin.
type Admin interface {
	// Base returns the URL that is called.
	Base() string
	// Call makes one call and returns the answer's body.
	Call(ctx context.Context, method, path string, body any) ([]byte, error)
}

// A Doctor checks one machine and the servers in its configuration.
type Doctor struct {
	Config    *config.Config    // required
	Admin     Admin             // nil: none
	ToAdmin   http.RoundTripper // for requests to the admin; nil: Go's own
	Gateway   string            // URL of the gateway; "": none
	ToGateway http.RoundTripper // for requests to the gateway; nil: Go's own
	Within    bool              // it runs in one of the servers, whose ports are taken by itself
	Now       func() time.Time

	found   []Finding
	answers map[string]bool // servers that respond
}

// within is the timeout of each request to a server.
const within = 3 * time.Second

func (d *Doctor) add(state State, check, detail, remedy string) {
	if state == OK {
		remedy = ""
	}
	d.found = append(d.found, Finding{State: state, Check: check, Detail: detail, Remedy: remedy})
}

// Examine runs all checks. It takes a few seconds if servers do not respond.
func (d *Doctor) Examine(ctx context.Context) []Finding {
	d.answers = make(map[string]bool)
	d.files()
	d.disk()
	d.certificates()
	d.store(ctx)
	d.admin(ctx)
	d.gateway(ctx)
	d.adminOfGateway(ctx)
	if !d.Within {
		d.ports()
	}
	d.portal()
	d.lastGood()
	return d.found
}

// Worst returns the worst state of some findings.
func Worst(found []Finding) State {
	worst := OK
	for _, f := range found {
		if f.State == Fail || f.State == Warn && worst == OK {
			worst = f.State
		}
	}
	return worst
}

// Open files of a process: each connection needs one, and one for its upstream
// connection.
const (
	fewFiles    = 4096
	enoughFiles = 65536
)

func (d *Doctor) files() {
	limit, err := openFiles()
	switch remedy := "raise it where the server is started: ulimit -n 65536, or LimitNOFILE=65536 for systemd"; {
	case errors.Is(err, errors.ErrUnsupported):
	case err != nil:
		d.add(Warn, "open files", "the limit cannot be read: "+err.Error(), "look at ulimit -n")
	case limit < fewFiles:
		d.add(Fail, "open files", fmt.Sprintf("at most %d here", limit), remedy)
	case limit < enoughFiles:
		d.add(Warn, "open files", fmt.Sprintf("at most %d here; %d serve 30,000 connections", limit, enoughFiles), remedy)
	default:
		d.add(OK, "open files", fmt.Sprintf("at most %d here", limit), "")
	}
}

func (d *Doctor) disk() {
	dir := d.Config.DataDir
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		d.add(Warn, "data_dir", dir+" is not there", "it is made by the first start of sluice up; name another with data_dir")
		return
	}
	free, total, err := space(dir)
	switch remedy := "free some, or move data_dir to a larger disk"; {
	case errors.Is(err, errors.ErrUnsupported):
	case err != nil:
		d.add(Warn, "disk", "the free space of "+dir+" cannot be read: "+err.Error(), "look at df")
	case free < 256<<20:
		d.add(Fail, "disk", fmt.Sprintf("%s free below %s", size(free), dir), remedy)
	case free < total/10:
		d.add(Warn, "disk", fmt.Sprintf("%s of %s free below %s", size(free), size(total), dir), remedy)
	default:
		d.add(OK, "disk", fmt.Sprintf("%s free below %s", size(free), dir), "")
	}
}

func size(bytes uint64) string {
	if bytes >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}

// certificates checks the files of listeners with TLS, and of calls of the admin.
func (d *Doctor) certificates() {
	files := d.Config.Gateway.TLS
	d.ownPair("gateway.tls.cert", files.Cert, files.Key)
	for _, one := range files.Certificates {
		cert, key, _ := strings.Cut(one, ":")
		d.pair("gateway.tls.certificates", cert, key)
	}
	d.authorities("gateway.tls.client_ca", files.ClientCA)
	d.authorities("gateway.admin_ca", d.Config.Gateway.AdminCA)
	d.ownPair("gateway.admin_cert", d.Config.Gateway.AdminCert, d.Config.Gateway.AdminKey)
	for _, one := range []struct {
		setting string
		files   *config.ListenerTLS
	}{{"admin.tls", &d.Config.Admin.TLS}, {"portal.tls", &d.Config.Portal.TLS}, {"telemetry.tls", &d.Config.Telemetry.TLS}} {
		d.ownPair(one.setting+".cert", one.files.Cert, one.files.Key)
		d.authorities(one.setting+".client_ca", one.files.ClientCA)
	}
}

// authorities checks a file of authorities; "": there is none.
func (d *Doctor) authorities(check, path string) {
	if path == "" {
		return
	}
	if _, err := certs.ReadAuthorities(path); err != nil {
		d.add(Fail, check, path+": "+cause(err).Error(), "name a PEM file with certificates of authorities")
		return
	}
	d.add(OK, check, path, "")
}

// ownPair is pair unless there is no certificate.
func (d *Doctor) ownPair(check, cert, key string) {
	if cert != "" {
		d.pair(check, cert, key)
	}
}

func (d *Doctor) pair(check, cert, key string) {
	if key == "" {
		key = cert
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		d.add(Fail, check, cert+": "+cause(err).Error(), "name PEM files with a certificate and its private key")
		return
	}
	d.expiry(check, cert, pair.Leaf.NotBefore, pair.Leaf.NotAfter)
}

// soon is how long before its expiry a certificate should be renewed.
const soon = 30 * 24 * time.Hour

func (d *Doctor) expiry(check, what string, from, until time.Time) {
	left := until.Sub(d.Now())
	switch remedy := "renew it; a running gateway takes the new one without a restart"; {
	case left <= 0:
		d.add(Fail, check, what+" ended on "+until.Format(time.DateOnly), remedy)
	case from.After(d.Now()):
		d.add(Fail, check, what+" begins on "+from.Format(time.DateOnly), "look at the clock of this machine, or take another certificate")
	case left < soon:
		d.add(Warn, check, fmt.Sprintf("%s ends in %d days, on %s", what, int(left.Hours()/24), until.Format(time.DateOnly)), remedy)
	default:
		d.add(OK, check, what+" is valid until "+until.Format(time.DateOnly), "")
	}
}

// ports checks that the addresses of servers that do not run are free.
func (d *Doctor) ports() {
	for _, one := range []struct{ key, address, server string }{
		{"admin.listen", d.Config.Admin.Listen, "admin"},
		{"portal.listen", d.Config.Portal.Listen, "admin"},
		{"gateway.listen", d.Config.Gateway.Listen, "gateway"},
		{"gateway.tls.listen", d.Config.Gateway.TLS.Listen, "gateway"},
		{"gateway.control_listen", d.controlAddress(), "gateway"},
	} {
		if one.address == "" || d.answers[one.server] {
			continue
		}
		ln, err := net.Listen("tcp", one.address)
		if err != nil {
			d.add(Fail, one.key, one.address+" cannot be used: "+cause(err).Error(), "end what listens there (ss -ltnp), or choose another address with "+one.key)
			continue
		}
		_ = ln.Close() // nothing was done with it
		d.add(OK, one.key, one.address+" is free", "")
	}
}

// portal warns of an admin that others can reach for the sake of the portal.
func (d *Doctor) portal() {
	host, _, err := net.SplitHostPort(d.Config.Admin.Listen)
	if err != nil || d.Config.Portal.Listen != "" {
		return
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return
	}
	d.add(Warn, "portal.listen", "the portal is served on "+d.Config.Admin.Listen+" with the admin, which others can reach",
		"set portal.listen, publish that address alone, and keep admin.listen from the public")
}

// controlAddress returns the address of the gateway API apart from traffic, or "".
func (d *Doctor) controlAddress() string {
	if d.Config.Secret.Empty() {
		return d.Config.Gateway.ControlListen
	}
	return d.Config.Gateway.ControlAddress(!d.Config.Gateway.Alone())
}

// aged is the age at which the last good configuration is reported.
const aged = 30 * 24 * time.Hour

// lastGood checks the file that a gateway starts from while its admin is unreachable.
func (d *Doctor) lastGood() {
	name := filepath.Join(d.Config.DataDir, "last-good.sealed")
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if d.Config.Gateway.AdminURL != "" {
			d.add(Warn, "last good", name+" is not there: this gateway cannot start while its admin is away", "let it reach its admin once")
		}
	case err != nil:
		d.add(Warn, "last good", name+": "+cause(err).Error(), "run doctor as the user that the gateway runs as")
	default:
		age := d.Now().Sub(info.ModTime()).Round(time.Minute)
		state := OK
		if age > aged {
			state = Warn
		}
		d.add(state, "last good", fmt.Sprintf("written %s ago", age), "look whether the gateway reaches its admin, if something changed since")
	}
}

// cause drops the address from an error, because the message has it already.
func cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

// get calls a server, and returns how far its clock is ahead of ours.
func (d *Doctor) get(ctx context.Context, over http.RoundTripper, url string) (resp *http.Response, ahead time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, 0, err
	}
	began := d.Now()
	client := http.Client{Transport: over}
	if resp, err = client.Do(req); err != nil {
		return nil, 0, err
	}
	_ = resp.Body.Close() // the head is enough
	at, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil { // no Date
		return resp, 0, nil
	}
	// Date has whole seconds, rounded down.
	return resp, at.Add(500 * time.Millisecond).Sub(began), nil
}
