package source

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluicegate/sluice/internal/definition"
)

// given is a source of the bundles that a test gives it.
type given struct {
	bundles  chan *definition.Bundle
	applied  chan map[string]error
	reported chan map[string]error
}

func newGiven() *given {
	return &given{make(chan *definition.Bundle, 1), make(chan map[string]error, 1), make(chan map[string]error, 1)}
}

func (g *given) Next(ctx context.Context, _ string) (*definition.Bundle, error) {
	select {
	case b := <-g.bundles:
		return b, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (g *given) Applied(_ *definition.Bundle, failed map[string]error) { g.applied <- failed }
func (g *given) Report(_ string, failed map[string]error)              { g.reported <- failed }

func withHeader(t *testing.T, id, value string) *definition.API {
	t.Helper()
	api, err := definition.ParseAPI([]byte(`{"api_id":"` + id + `","name":"n","org_id":"one","use_keyless":true,"proxy":{"listen_path":"/` + id + `/","target_url":"http://a"},
		"version_data":{"not_versioned":true,"versions":{"Default":{"name":"Default","global_headers":{"X-A":"` + value + `"}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// headers returns what the APIs of a bundle set, and why others are left out.
func headers(b *definition.Bundle) map[string]string {
	all := make(map[string]string)
	for _, api := range b.APIs {
		all[api.ID] = api.InForce().VersionData.Versions["Default"].GlobalHeaders["X-A"]
	}
	for _, s := range b.Skipped {
		all[s.APIID] = "left out: " + s.Reason
	}
	return all
}

const place = `version_data.versions["Default"].global_headers["X-A"]: `

func TestSecretsOfAllKindsTakeThePlaceOfReferences(t *testing.T) {
	allowed, other := t.TempDir(), t.TempDir()
	for path, content := range map[string]string{
		filepath.Join(allowed, "token"): "of a file\n", filepath.Join(allowed, "empty"): "\n", filepath.Join(other, "token"): "forbidden",
		filepath.Join(allowed, "long"): strings.Repeat("a", definition.MaxSecret+1), filepath.Join(allowed, "full"): strings.Repeat("a", definition.MaxSecret) + "\r\n",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"within": "token", "out": filepath.Join(other, "token")} {
		if err := os.Symlink(to, filepath.Join(allowed, name)); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"SLUICE_SECRET_A": "of the environment", "SLUICE_SECRET_EMPTY": ""}
	g := newGiven()
	s := NewSecrets(g, SecretsOptions{Folders: []string{allowed}, Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	b := &definition.Bundle{Revision: "1", Secrets: definition.Secrets{"one": {"a": "sealed"}, "two": {"b": "of others"}}}
	want := map[string]string{}
	for _, c := range []struct{ id, header, want string }{
		{"plain", "as it is", "as it is"},
		{"sealed", "Bearer {secret:a}", "Bearer sealed"},
		{"others", "{secret:b}", "left out: " + place + "{secret:b}: does not exist"},
		{"env", "{env:SLUICE_SECRET_A}", "of the environment"},
		{"unset", "{env:SLUICE_SECRET_B}", "left out: " + place + "{env:SLUICE_SECRET_B}: is not set in the environment of the gateway"},
		{"emptyenv", "{env:SLUICE_SECRET_EMPTY}", "left out: " + place + "{env:SLUICE_SECRET_EMPTY}: is empty"},
		{"file", "{file:" + allowed + "/token}", "of a file"},
		{"link", "{file:" + allowed + "/within}", "of a file"},
		{"full", "{file:" + allowed + "/full}", strings.Repeat("a", definition.MaxSecret)},
		{"forbidden", "{file:" + other + "/token}", "left out: " + place + "{file:" + other + "/token}: is not below a folder of gateway.secret_files"},
		{"up", "{file:" + allowed + "/../" + filepath.Base(other) + "/token}", "is not below a folder"},
		{"out", "{file:" + allowed + "/out}", "path escapes from parent"},
		{"missing", "{file:" + allowed + "/none}", "no such file or directory"},
		{"folder", "{file:" + allowed + "/.}", "is not below a folder"},
		{"empty", "{file:" + allowed + "/empty}", "is empty"},
		{"long", "{file:" + allowed + "/long}", "is longer than 8192 bytes"},
	} {
		b.APIs = append(b.APIs, withHeader(t, c.id, c.header))
		want[c.id] = c.want
	}
	g.bundles <- b
	next, err := s.Next(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	got := headers(next)
	for id := range want {
		if got[id] != want[id] && !(strings.HasPrefix(got[id], "left out: "+place) && strings.HasSuffix(got[id], want[id])) && !strings.Contains(got[id], ": "+want[id]) {
			t.Errorf("%s: %.200q, want %.80q", id, got[id], want[id])
		}
	}
	if len(got) != len(want) || next.APIs[0] != b.APIs[0] || next.Revision != "1" {
		t.Errorf("%d of %d, revision %s", len(got), len(want), next.Revision)
	}
}

func TestFilesThatChangeAreReadAgain(t *testing.T) {
	folder := t.TempDir()
	write := func(content string) {
		if err := os.WriteFile(filepath.Join(folder, "token"), []byte(content), 0o600); err != nil {
			t.Error(err)
		}
	}
	write("first")
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		g := newGiven()
		s := NewSecrets(g, SecretsOptions{Folders: []string{folder}, Env: os.LookupEnv})
		g.bundles <- &definition.Bundle{Revision: "1", APIs: []*definition.API{withHeader(t, "file", "{file:"+folder+"/token}"), withHeader(t, "plain", "a")}}
		first, _ := s.Next(ctx, "")
		s.Applied(first, map[string]error{"a": nil})
		if failed := <-g.applied; len(failed) != 1 {
			t.Errorf("%v reached the source", failed)
		}
		write("second")
		second, _ := s.Next(ctx, "1")
		if got := headers(second); got["file"] != "second" || headers(first)["file"] != "first" {
			t.Errorf("%v", got)
		}
		if second.Revision != "1" || second.APIs[1] != first.APIs[1] || second.APIs[0] == first.APIs[0] || second.APIs[0].ContentHash() != first.APIs[0].ContentHash() {
			t.Error("other objects than those of the changed file are new, or it is not")
		}
		s.Applied(second, map[string]error{"b": nil, "c": nil})
		if failed := <-g.reported; len(failed) != 2 {
			t.Errorf("%v was reported", failed)
		}
		if err := os.Remove(filepath.Join(folder, "token")); err != nil {
			t.Error(err)
		}
		third, _ := s.Next(ctx, "1")
		if got := headers(third); !strings.HasSuffix(got["file"], "no such file or directory") || len(third.APIs) != 1 {
			t.Errorf("%v", got)
		}
		s.Applied(third, nil)
		<-g.reported

		// A bundle of the source is not held up, and keeps what did not change.
		write("fourth")
		fourth, _ := s.Next(ctx, "1")
		s.Applied(fourth, nil)
		<-g.reported
		g.bundles <- &definition.Bundle{Revision: "2", APIs: append([]*definition.API{withHeader(t, "new", "b")}, s.last.APIs...)}
		fifth, _ := s.Next(ctx, "1")
		want := map[string]string{"new": "b", "file": "fourth", "plain": "a"}
		if got := headers(fifth); !maps.Equal(got, want) || fifth.Revision != "2" || fifth.APIs[1] != fourth.APIs[0] {
			t.Errorf("%v", got)
		}
		s.Applied(fifth, nil)
		<-g.applied
		end()
		if _, err := s.Next(ctx, "2"); err == nil {
			t.Error("no error after the end")
		}
	})
}
