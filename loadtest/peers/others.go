package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/loadtest/rig"
)

// goProxy starts a proxy of these load tests' own, by the name of its program.
func goProxy(name string) func(context.Context, *bench) (*running, error) {
	return func(ctx context.Context, b *bench) (*running, error) {
		addr, err := rig.FreeAddress()
		if err != nil {
			return nil, err
		}
		p, err := b.rig.Start(ctx, rig.Command{
			Name: name, Path: filepath.Join(b.bin, name), Args: []string{"-addr", addr, "-origin", b.origin}, Env: b.goEnv(), Ready: addr,
		})
		return &running{process: p, addr: addr}, err
	}
}

// haproxyConf keeps connections on both sides open, and writes no log.
const haproxyConf = `
global
  nbthread %[1]d
  maxconn 8192
defaults
  mode http
  timeout connect 5s
  timeout client 600s
  timeout server 600s
  timeout http-keep-alive 600s
  http-reuse always
frontend clients
  bind %[2]s
%[4]s  default_backend origin
backend origin
  server origin %[3]s pool-purge-delay 600s pool-max-conn -1
`

// haproxyRules have a key known, and its requests counted for a rate of a sliding
// minute and a quota of an hour, with what is left told in headers. %[1]s is the
// folder.
const haproxyRules = `  stick-table type string len 96 size 200k expire 1h store http_req_rate(1m),gpc0,gpc0_rate(1h)
  http-request deny deny_status 401 unless { req.hdr(Authorization) -m found }
  http-request deny deny_status 403 unless { req.hdr(Authorization),map_str(%[1]s/keys) -m found }
  http-request track-sc0 req.hdr(Authorization)
  http-request deny deny_status 429 if { sc0_http_req_rate gt 100000000 }
  http-request deny deny_status 403 if { sc0_gpc0_rate gt 1000000000 }
  http-request sc-inc-gpc0(0)
  http-response set-header X-RateLimit-Limit 1000000000
  http-response set-header X-RateLimit-Remaining %%[sc0_gpc0_rate,neg,add(1000000000)]
  http-response set-header X-RateLimit-Reset %%[date(3600)]
`

// startHAProxy runs HAProxy; with keys it governs them.
func startHAProxy(keys int) func(context.Context, *bench) (*running, error) {
	return func(ctx context.Context, b *bench) (*running, error) {
		path, err := installed("haproxy")
		if err != nil {
			return nil, err
		}
		return b.startConfigured(ctx, configured{name: "haproxy", path: path, keys: keys}, func(dir, addr string) (string, []string) {
			rules := ""
			if keys > 0 {
				rules = fmt.Sprintf(haproxyRules, dir)
			}
			return fmt.Sprintf(haproxyConf, b.procs, addr, b.origin, rules), []string{"-db", "-f", filepath.Join(dir, "conf")}
		})
	}
}

// caddyConf keeps connections on both sides open, and writes no log.
const caddyConf = `
{
	admin off
	auto_https off
	persist_config off
	log {
		level ERROR
	}
	servers {
		protocols h1
		timeouts {
			idle 10m
		}
	}
}
http://%[1]s {
	reverse_proxy %[2]s {
		transport http {
			versions 1.1
			compression off
			keepalive 10m
			keepalive_idle_conns 4096
			keepalive_idle_conns_per_host 4096
		}
	}
}
`

// startCaddy runs Caddy where it was built: it takes minutes.
func startCaddy(ctx context.Context, b *bench) (*running, error) {
	path := filepath.Join(b.bin, "caddy")
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("caddy: %w (make loadtest OTHERS=1 builds it)", errAbsent)
	}
	return b.startConfigured(ctx, configured{name: "caddy", path: path, env: b.goEnv()}, func(dir, addr string) (string, []string) {
		return fmt.Sprintf(caddyConf, addr, b.origin), []string{"run", "--adapter", "caddyfile", "--config", filepath.Join(dir, "conf")}
	})
}

// configured is a program that reads a file named conf in its folder, and with
// keys one named keys: a key and its policy on each line.
type configured struct {
	name string
	path string
	env  []string // besides the rig's own
	keys int
}

// startConfigured starts one. write returns its configuration and arguments.
func (b *bench) startConfigured(ctx context.Context, c configured, write func(dir, addr string) (conf string, args []string)) (*running, error) {
	addr, err := rig.FreeAddress()
	if err != nil {
		return nil, err
	}
	dir, err := b.rig.Dir(c.name + "-" + strings.TrimPrefix(addr, "127.0.0.1:"))
	if err != nil {
		return nil, err
	}
	r := &running{addr: addr}
	if c.keys > 0 {
		r.keys = make([]string, c.keys)
		var lines strings.Builder
		for i := range r.keys {
			r.keys[i] = credential.Generate(credential.DefaultPrefix)
			fmt.Fprintf(&lines, "%s %s\n", r.keys[i], plenty)
		}
		if err := os.WriteFile(filepath.Join(dir, "keys"), []byte(lines.String()), 0o600); err != nil {
			return nil, fmt.Errorf("writing keys for %s: %w", c.name, err)
		}
		r.request = b.keyed(addr, r.keys)
	}
	conf, args := write(dir, addr)
	if err := os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o644); err != nil {
		return nil, fmt.Errorf("configuring %s: %w", c.name, err)
	}
	r.process, err = b.rig.Start(ctx, rig.Command{Name: c.name, Path: c.path, Args: args, Env: append(c.env, "HOME="+dir), Ready: addr})
	return r, err
}
