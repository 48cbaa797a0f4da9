package e2e

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

// server is a program that serves, with the addresses that it was given.
type server struct {
	*process
	traffic   string // URL of the gateway; "" for an admin
	admin     string // URL of the admin; "" for a gateway
	telemetry string // URL of metrics and health
	control   string // URL of the gateway API: of its own with "gateway.control_listen", else traffic
}

// newUp describes `sluice up` on a directory.
func newUp(t testing.TB, dir string, with settings, args ...string) *server {
	t.Helper()
	s := &server{traffic: freeAddress(t), admin: freeAddress(t)}
	all := merged(with, settings{"data_dir": dir, "gateway.listen": s.traffic, "admin.listen": s.admin})
	s.process = newProcess(t, all, append([]string{"up"}, args...)...)
	s.traffic, s.admin = "http://"+s.traffic, "http://"+s.admin
	s.telemetry, s.control = s.admin, s.traffic
	return s
}

// newAdmin describes `sluice admin`; with names its database and its store.
func newAdmin(t testing.TB, with settings) *server {
	t.Helper()
	s := &server{admin: freeAddress(t)}
	all := merged(with, settings{"data_dir": dataDir(t), "admin.listen": s.admin})
	s.process = newProcess(t, all, "admin")
	s.admin = "http://" + s.admin
	s.telemetry = s.admin
	return s
}

// newGateway describes `sluice gateway`; with says where its configuration comes from.
func newGateway(t testing.TB, with settings) *server {
	t.Helper()
	s := &server{traffic: freeAddress(t), telemetry: freeAddress(t)}
	all := merged(settings{"data_dir": dataDir(t)}, with, settings{"gateway.listen": s.traffic, "telemetry.listen": s.telemetry})
	s.process = newProcess(t, all, "gateway")
	s.traffic, s.telemetry = "http://"+s.traffic, "http://"+s.telemetry
	s.control = s.traffic
	if own := all["gateway.control_listen"]; own != "" {
		s.control = "http://" + own
	}
	return s
}

func merged(all ...settings) settings {
	m := settings{}
	for _, one := range all {
		maps.Copy(m, one)
	}
	return m
}

// startReady starts the program and waits until it can do its work.
func (s *server) startReady() *server {
	s.t.Helper()
	s.start()
	s.awaitReady()
	return s
}

// awaitReady waits until the program says that it can do its work; `up` says so
// by its banner.
func (s *server) awaitReady() {
	s.t.Helper()
	if s.args[0] == "up" {
		s.awaitStdout("\nadmin          http://")
	}
	url := s.telemetry + "/readyz"
	s.await("an answer 200 from "+url, func() error {
		got, err := send(http.MethodGet, url, nil)
		if err == nil && got.status != http.StatusOK {
			err = fmt.Errorf("it answers %d %s", got.status, got.body)
		}
		return err
	})
}

// adminKey reads the key of the first admin from the data directory.
func (s *server) adminKey() string {
	s.t.Helper()
	return plant(s.readState("admin.key"))
}

// readState reads one value that the program keeps in its data directory.
func (s *server) readState(name string) string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.settings["data_dir"], name))
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// saveJSON writes a file as JSON, at once: no reader sees a half.
func saveJSON(t testing.TB, path string, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	saveText(t, path, string(data))
}

// saveText writes a file at once: no reader sees a half.
func saveText(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
