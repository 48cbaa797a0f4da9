package rig

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A Server is a program that serves, with its addresses.
type Server struct {
	*Process
	Traffic   string // URL of the gateway; "" for an admin
	Admin     string // URL of the admin; "" for a gateway
	Telemetry string // URL of metrics and health
	Control   string // URL of the gateway API: of its own with "gateway.control_listen", else traffic
}

// NewUp describes `sluice up` on a directory.
func NewUp(t testing.TB, dir string, with Settings, args ...string) *Server {
	t.Helper()
	s := &Server{Traffic: FreeAddress(t), Admin: FreeAddress(t)}
	all := Merge(with, Settings{"data_dir": dir, "gateway.listen": s.Traffic, "admin.listen": s.Admin})
	s.Process = NewProcess(t, all, append([]string{"up"}, args...)...)
	s.Traffic, s.Admin = "http://"+s.Traffic, "http://"+s.Admin
	s.Telemetry, s.Control = s.Admin, s.Traffic
	return s
}

// NewAdmin describes `sluice admin`; with contains its database and its store.
func NewAdmin(t testing.TB, with Settings) *Server {
	t.Helper()
	s := &Server{Admin: FreeAddress(t)}
	all := Merge(with, Settings{"data_dir": DataDir(t), "admin.listen": s.Admin})
	s.Process = NewProcess(t, all, "admin")
	s.Admin = "http://" + s.Admin
	s.Telemetry = s.Admin
	return s
}

// NewGateway describes `sluice gateway`; with contains the source of its configuration.
// It stops without gateway.drain_delay unless with says otherwise.
func NewGateway(t testing.TB, with Settings) *Server {
	t.Helper()
	s := &Server{Traffic: FreeAddress(t), Telemetry: FreeAddress(t)}
	all := Merge(Settings{"data_dir": DataDir(t), "gateway.drain_delay": "0s"}, with, Settings{"gateway.listen": s.Traffic, "telemetry.listen": s.Telemetry})
	if all["gateway.control_login_rate"] == "" { // tests call without the secret as often as they like
		all["gateway.control_login_rate"] = "10000"
	}
	if all["gateway.control_listen"] == "" { // the default is one address for all gateways of this machine
		all["gateway.control_on_traffic"] = "true"
	}
	s.Process = NewProcess(t, all, "gateway")
	s.Traffic, s.Telemetry = "http://"+s.Traffic, "http://"+s.Telemetry
	s.Control = s.Traffic
	if own := all["gateway.control_listen"]; own != "" {
		s.Control = "http://" + own
	}
	return s
}

// Merge returns all settings; later values replace earlier ones.
func Merge(all ...Settings) Settings {
	m := Settings{}
	for _, one := range all {
		maps.Copy(m, one)
	}
	return m
}

// StartReady starts the program and waits until it is ready.
func (s *Server) StartReady() *Server {
	s.T.Helper()
	s.Start()
	s.awaitReady()
	return s
}

// awaitReady waits until the program reports that it is ready. `up` prints its
// banner first.
func (s *Server) awaitReady() {
	s.T.Helper()
	if s.args[0] == "up" {
		s.awaitStdout("\nadmin          http://")
	}
	url := s.Telemetry + "/readyz"
	s.Await("an answer 200 from "+url, func() error {
		got, err := Send(http.MethodGet, url, nil)
		if err == nil && got.Status != http.StatusOK {
			err = fmt.Errorf("it answers %d %s", got.Status, got.Body)
		}
		return err
	})
}

// AdminKey returns the key of the first admin from the data directory.
func (s *Server) AdminKey() string {
	s.T.Helper()
	return Plant(s.ReadState("admin.key"))
}

// ReadState returns the content of a file in the data directory.
func (s *Server) ReadState(name string) string {
	s.T.Helper()
	data, err := os.ReadFile(filepath.Join(s.Settings["data_dir"], name))
	if err != nil {
		s.T.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// SaveJSON replaces a file with JSON atomically.
func SaveJSON(t testing.TB, path string, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	SaveText(t, path, string(data))
}

// SaveText replaces a file atomically.
func SaveText(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// AwaitUse calls a path with a key until the gateway knows both. It returns the
// first answer that is not a refusal of an unknown API or key.
func (s *Server) AwaitUse(path, key string) Answer {
	s.T.Helper()
	var got Answer
	s.Await("the key to reach "+path, func() (err error) {
		if got, err = Send("GET", s.Traffic+path, nil, "Authorization", key); err != nil {
			return err
		}
		switch got.Reason() {
		case "route_not_found", "auth_unknown", "access_denied", "auth_inactive":
			return fmt.Errorf("%s", got)
		}
		return nil
	})
	return got
}
