package main

import (
	"fmt"
	"os"
	"strings"
)

// A proxy is what a configuration depends on.
type proxy struct {
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

// haproxyRules look up the key, count its requests for a rate per sliding minute and a
// quota per hour, and add headers with the rest. %[1]s is the folder.
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
func haproxyConfig(p proxy) string {
	rules := ""
	if p.Keys {
		rules = fmt.Sprintf(haproxyRules, p.Dir)
	}
	return fmt.Sprintf(haproxyConf, p.Procs, p.Addr, p.Origin, rules)
}

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
func cosmoConfig(p proxy, graph string) string { return fmt.Sprintf(cosmoConf, p.Addr, graph) }

// nginxConf keeps connections on both sides open, and writes no access log.
const nginxConf = `
%[1]s
worker_processes %[2]d;
daemon off;
pid %[3]s/pid;
error_log stderr warn;
worker_rlimit_nofile 16384;
events { worker_connections 8192; multi_accept on; }
http {
  access_log off;
  client_body_temp_path %[3]s/body;
  proxy_temp_path %[3]s/proxy;
  fastcgi_temp_path %[3]s/fastcgi;
  uwsgi_temp_path %[3]s/uwsgi;
  scgi_temp_path %[3]s/scgi;
  keepalive_timeout 600s;
  keepalive_requests 1000000000;
%[6]s  upstream origin {
    server %[4]s;
    keepalive 1024;
    keepalive_timeout 600s;
    keepalive_requests 1000000000;
  }
  server {
    listen %[5]s backlog=4096;
    location / {
%[7]s      proxy_pass http://origin;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }
  }
}
`

// nginxKeys declares keys and counters in shared memory. %[1]s is the folder.
const nginxKeys = `  lua_package_path "/usr/share/lua/5.1/?.lua;;";
  lua_shared_dict keys 16m;
  lua_shared_dict rate 16m;
  lua_shared_dict quota 16m;
  init_by_lua_block {
    require "resty.core"
    for line in io.lines("%[1]s/keys") do
      local key, policy = line:match("^(%%S+) (%%S+)$")
      assert(ngx.shared.keys:set(key, policy))
    end
  }
`

// nginxGovern looks up the key, counts its requests for a rate per minute and a quota per
// hour, and adds headers with the rest.
const nginxGovern = `      access_by_lua_block {
        local key = ngx.var.http_authorization
        if not key then return ngx.exit(401) end
        if not ngx.shared.keys:get(key) then return ngx.exit(403) end
        local n = ngx.shared.rate:incr(key, 1, 0, 60)
        if not n or n > 100000000 then return ngx.exit(429) end
        local quota = ngx.shared.quota
        local used = quota:incr(key, 1, 0, 3600)
        if not used or used > 1000000000 then return ngx.exit(403) end
        local header = ngx.header
        header["X-RateLimit-Limit"] = 1000000000
        header["X-RateLimit-Remaining"] = 1000000000 - used
        header["X-RateLimit-Reset"] = math.ceil(ngx.time() + quota:ttl(key))
      }
`

// luaModules are the files of nginx's modules for Lua, in the order in which they
// load.
func luaModules() []string {
	return []string{"/usr/lib/nginx/modules/ndk_http_module.so", "/usr/lib/nginx/modules/ngx_http_lua_module.so"}
}

// Nginx returns the configuration of nginx; with keys, of nginx with Lua.
func nginxConfig(p proxy) string {
	var first strings.Builder
	known, govern := "", ""
	if p.Keys {
		known, govern = fmt.Sprintf(nginxKeys, p.Dir), nginxGovern
		for _, module := range luaModules() {
			fmt.Fprintf(&first, "load_module %s;\n", module)
		}
	}
	if os.Geteuid() == 0 {
		first.WriteString("user root;") // other users cannot read the folder
	}
	return fmt.Sprintf(nginxConf, first.String(), p.Procs, p.Dir, p.Origin, p.Addr, known, govern)
}
