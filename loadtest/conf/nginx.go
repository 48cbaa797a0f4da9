package conf

import (
	"fmt"
	"os"
	"strings"
)

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

// nginxKeys has keys in memory that workers share, and counters beside them.
// %[1]s is the folder.
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

// nginxGovern knows a key, and counts its request for a rate of a minute and a
// quota of an hour, with what is left told in headers.
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

// LuaModules are the files of nginx's modules for Lua, in the order in which they
// load.
func LuaModules() []string {
	return []string{"/usr/lib/nginx/modules/ndk_http_module.so", "/usr/lib/nginx/modules/ngx_http_lua_module.so"}
}

// Nginx returns the configuration of nginx; with keys, of nginx with Lua.
func Nginx(p Proxy) string {
	var first strings.Builder
	known, govern := "", ""
	if p.Keys {
		known, govern = fmt.Sprintf(nginxKeys, p.Dir), nginxGovern
		for _, module := range LuaModules() {
			fmt.Fprintf(&first, "load_module %s;\n", module)
		}
	}
	if os.Geteuid() == 0 {
		first.WriteString("user root;") // of others the folder is none of
	}
	return fmt.Sprintf(nginxConf, first.String(), p.Procs, p.Dir, p.Origin, p.Addr, known, govern)
}
