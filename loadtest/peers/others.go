package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluicegate/sluice/loadtest/rig"
)

// nginxConf keeps connections on both sides open, and writes no access log.
const nginxConf = `
%[1]s
worker_processes %[2]d;
daemon off;
pid %[3]s/pid;
error_log stderr warn;
worker_rlimit_nofile 16384;
events { worker_connections 8192; }
http {
  access_log off;
  client_body_temp_path %[3]s/body;
  proxy_temp_path %[3]s/proxy;
  fastcgi_temp_path %[3]s/fastcgi;
  uwsgi_temp_path %[3]s/uwsgi;
  scgi_temp_path %[3]s/scgi;
  keepalive_timeout 600s;
  keepalive_requests 1000000000;
  upstream origin {
    server %[4]s;
    keepalive 256;
    keepalive_timeout 600s;
    keepalive_requests 1000000000;
  }
  server {
    listen %[5]s;
    location / {
      proxy_pass http://origin;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }
  }
}
`

func startNginx(ctx context.Context, b *bench) (*running, error) {
	path, err := installed("nginx")
	if err != nil {
		return nil, err
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // of others the folder is none of
	}
	return b.startConfigured(ctx, "nginx", func(dir, addr string) (string, rig.Command) {
		conf := fmt.Sprintf(nginxConf, user, b.procs, dir, b.origin, addr)
		return conf, rig.Command{Path: path, Args: []string{"-p", dir, "-e", "stderr", "-c", filepath.Join(dir, "conf")}}
	})
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
  default_backend origin
backend origin
  server origin %[3]s pool-purge-delay 600s pool-max-conn -1
`

func startHAProxy(ctx context.Context, b *bench) (*running, error) {
	path, err := installed("haproxy")
	if err != nil {
		return nil, err
	}
	return b.startConfigured(ctx, "haproxy", func(dir, addr string) (string, rig.Command) {
		conf := fmt.Sprintf(haproxyConf, b.procs, addr, b.origin)
		return conf, rig.Command{Path: path, Args: []string{"-db", "-f", filepath.Join(dir, "conf")}}
	})
}

// startConfigured starts a program that reads a file named conf in its folder.
func (b *bench) startConfigured(ctx context.Context, name string, configure func(dir, addr string) (string, rig.Command)) (*running, error) {
	addr, err := rig.FreeAddress()
	if err != nil {
		return nil, err
	}
	dir, err := b.rig.Dir(name + "-" + strings.TrimPrefix(addr, "127.0.0.1:"))
	if err != nil {
		return nil, err
	}
	conf, command := configure(dir, addr)
	if err := os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o644); err != nil {
		return nil, fmt.Errorf("configuring %s: %w", name, err)
	}
	command.Name, command.Ready = name, addr
	p, err := b.rig.Start(ctx, command)
	return &running{process: p, addr: addr}, err
}
