// Package conf writes the configurations of the proxies that take part in load
// tests. All of them keep connections on both sides open, and write no access log.
package conf

import "fmt"

// A Proxy is what a configuration depends on.
type Proxy struct {
	Dir    string // its own folder; with Keys a file named keys is in it, a key and a policy on each line
	Addr   string // that it listens on
	Origin string // address of the upstream
	Procs  int    // processes or threads
	Keys   bool   // whether keys are known and limited
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

// HAProxy returns the configuration of HAProxy.
func HAProxy(p Proxy) string {
	rules := ""
	if p.Keys {
		rules = fmt.Sprintf(haproxyRules, p.Dir)
	}
	return fmt.Sprintf(haproxyConf, p.Procs, p.Addr, p.Origin, rules)
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

// Caddy returns the configuration of Caddy, as a Caddyfile.
func Caddy(p Proxy) string { return fmt.Sprintf(caddyConf, p.Addr, p.Origin) }

// cosmoConf has the router check depth, with its caches on, and none of what it
// would report to others.
const cosmoConf = `
version: "1"
listen_addr: %[1]s
graphql_path: /bench/graphql
log_level: error
introspection_enabled: false
playground:
  enabled: false
execution_config:
  file:
    path: %[2]s
telemetry:
  tracing:
    enabled: false
  metrics:
    otlp:
      enabled: false
    prometheus:
      enabled: false
graphql_metrics:
  enabled: false
access_logs:
  enabled: false
traffic_shaping:
  all:
    max_idle_conns_per_host: 1024
security:
  complexity_calculation_cache:
    enabled: true
  complexity_limits:
    depth:
      enabled: true
      limit: 5
`

// Cosmo returns the configuration of Cosmo's router, which reads its graph from a
// file.
func Cosmo(p Proxy, graph string) string { return fmt.Sprintf(cosmoConf, p.Addr, graph) }
