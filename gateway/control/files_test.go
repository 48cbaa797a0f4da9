package control

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
)

// writerEnv has the test program write definitions into a folder until it is
// killed, and say of each that it is stored.
const writerEnv = "SLUICE_TEST_CONTROL_WRITER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerEnv); dir != "" {
		fmt.Println("writer:", writeForEver(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func writeForEver(dir string) error {
	files, err := NewFiles(FilesOptions{AppsDir: filepath.Join(dir, "apps"), PoliciesFile: filepath.Join(dir, "policies.json"), Live: new(served)})
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		api, err := definition.ParseAPI([]byte(definitionOf(fmt.Sprintf("api%d", n%40), fmt.Sprintf(`"x-round":%d,`, n))))
		if err != nil {
			return err
		}
		if _, err := files.SaveAPI(context.Background(), api, false); err != nil {
			return err
		}
		fmt.Printf("api %s %d\n", api.ID, n)
		p := &definition.Policy{ID: fmt.Sprintf("p%d", n%40), Name: fmt.Sprint(n)}
		if err := files.SavePolicy(context.Background(), p, false); err != nil {
			return err
		}
		fmt.Printf("policy %s %d\n", p.ID, n)
	}
}

// crash has a writer killed after some writes and returns, by kind and id, the
// last of each that was acknowledged.
func crash(t *testing.T, dir string, after int) map[string]int {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), writerEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stored := make(map[string]int)
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		var kind, id string
		var round int
		if _, err := fmt.Sscan(lines.Text(), &kind, &id, &round); err != nil {
			t.Errorf("%q: %v", lines.Text(), err)
		}
		stored[kind+" "+id] = round
		if n == after {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // it was killed
	return stored
}

func TestWhatWasAcknowledgedSurvivesACrash(t *testing.T) {
	for _, after := range []int{1, 50, 231} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			dir := t.TempDir()
			stored := crash(t, dir, after)
			if len(stored) == 0 {
				t.Fatal("nothing was stored")
			}
			policies, err := os.ReadFile(filepath.Join(dir, "policies.json"))
			if err != nil {
				t.Fatal(err)
			}
			rounds := make(map[string]string)
			for id, p := range decoded[map[string]definition.Policy](t, response{body: string(policies)}) {
				rounds["policy "+id] = p.Name
			}
			names, err := filepath.Glob(filepath.Join(dir, "apps", "*.json"))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				data, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				api, err := definition.ParseAPI(data)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				rounds["api "+api.ID] = string(api.Unknown.Get("x-round"))
			}
			for what, round := range stored {
				var have int
				if _, err := fmt.Sscan(rounds[what], &have); err != nil || have < round {
					t.Errorf("%s: round %q, %d was acknowledged", what, rounds[what], round)
				}
			}
		})
	}
}

func TestReadersNeverSeeHalfAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.json")
	contents := []string{strings.Repeat("a", 1<<20), strings.Repeat("b", 1<<19)}
	if err := replaceFile(name, []byte(contents[0])); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < 30 && err == nil; i++ {
			err = replaceFile(name, []byte(contents[i%2]))
		}
		written <- err
	}()
	for {
		data, err := os.ReadFile(name)
		if text := string(data); err != nil || text != contents[0] && text != contents[1] {
			t.Fatalf("read %d bytes, %v", len(data), err)
		}
		select {
		case err := <-written:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
}

func TestWritersOfOneProcessLoseNothing(t *testing.T) {
	b := onFiles(t)
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			for _, r := range []response{
				b.call("POST", "/svc/policies", fmt.Sprintf(`{"id":"p%d"}`, i)),
				b.call("POST", "/svc/apis", definitionOf(fmt.Sprintf("api%d", i), "")),
				b.call("POST", "/svc/apis", definitionOf("same", fmt.Sprintf(`"tags":["%d"],`, i))),
			} {
				if r.status != 200 {
					t.Errorf("%d %s", r.status, r.body)
				}
			}
		})
	}
	all.Wait()
	b.reload()
	if apis, policies := len(b.live.APIs()), b.live.Policies().Len(); apis != 31 || policies != 30 {
		t.Errorf("%d APIs, %d policies", apis, policies)
	}
}

func TestAFileKeepsItsModeAndANewOneIsNotForAll(t *testing.T) {
	b := onFiles(t)
	b.write("old.json", definitionOf("old", ""))
	if err := os.Chmod(filepath.Join(b.apps, "old.json"), 0o604); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]os.FileMode{"old": 0o604, "new": newFileMode} {
		b.want("POST", "/svc/apis", definitionOf(id, ""), 200, done(id, "added"))
		if info, err := os.Stat(filepath.Join(b.apps, id+".json")); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", id, info, err)
		}
	}
}

func TestAFolderThatCannotBeWrittenIsReported(t *testing.T) {
	b := onFiles(t)
	if err := os.Remove(b.apps); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.apps, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := b.call("POST", "/svc/apis", definitionOf("weather", ""))
	if got.status != 500 || !strings.Contains(got.body, "not a directory") || !strings.Contains(b.log.String(), "not a directory") {
		t.Errorf("got %d %s, log %s", got.status, got.body, b.log)
	}
}

func TestMissingFoldersAreCreated(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there")
	files, err := NewFiles(FilesOptions{AppsDir: filepath.Join(dir, "apps"), PoliciesFile: filepath.Join(dir, "policies", "p.json"), Live: new(served)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := files.SaveAPI(t.Context(), &definition.API{ID: "a"}, false); err != nil {
		t.Error(err)
	}
	if err := files.SavePolicy(t.Context(), &definition.Policy{ID: "p"}, false); err != nil {
		t.Error(err)
	}
}

func TestTemporaryFilesOfKilledWritersAreRemoved(t *testing.T) {
	b := onFiles(t)
	old, fresh := filepath.Join(b.apps, ".new-1"), filepath.Join(b.apps, ".new-2")
	for _, name := range []string{old, fresh} {
		if err := os.WriteFile(name, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(old, past, past); err != nil {
		t.Fatal(err)
	}
	if _, err := NewFiles(FilesOptions{AppsDir: b.apps, Live: b.live}); err != nil {
		t.Fatal(err)
	}
	if b.files() != ".new-2" {
		t.Errorf("files: %s", b.files())
	}
}

func TestAWriteThatFailsLeavesNoTrace(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.json")
	if err := os.MkdirAll(filepath.Join(name, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(name, []byte("{}")); err == nil {
		t.Error("no error")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

func TestThePatternOfAFolderIsItsName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "[a]*?")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	live := new(served)
	live.put(&definition.Bundle{Revision: "r", APIs: []*definition.API{{ID: "pets"}}})
	if err := os.WriteFile(filepath.Join(dir, "x.json"), []byte(definitionOf("pets", "")), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := NewFiles(FilesOptions{AppsDir: dir, Live: live})
	if err != nil {
		t.Fatal(err)
	}
	if err := files.DeleteAPI(t.Context(), "pets"); err != nil {
		t.Error(err)
	}
}
