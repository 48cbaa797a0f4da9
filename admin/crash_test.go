package admin

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/secret"
)

// childOf is the variable that makes the test binary an admin on the database
// that it names.
const childOf = "SLUICE_TEST_ADMIN_ON"

func TestMain(m *testing.M) {
	if dsn := os.Getenv(childOf); dsn != "" {
		if err := runChild(dsn); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// runChild serves until the process is killed, and says where.
func runChild(dsn string) error {
	st, err := store.Open(context.Background(), store.Options{URL: dsn, MaxConns: 10})
	if err != nil {
		return err
	}
	server, err := New(Deps{
		Store: st, Keys: newShelfOfKeys(), Counters: counter.NewMemory(nil), KeyOptions: keyOptions(),
		GatewayToken: secret.New(gatewayToken),
	})
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + ln.Addr().String())
	return server.Serve(ln)
}

// child starts an admin in a process of its own.
func (b *bench) child() (url string, kill func()) {
	b.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childOf+"="+b.dsn)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // it may be gone already
		_ = cmd.Wait()         // says that it was killed
	})
	b.t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.TrimSpace(line), kill
}

func TestEveryAcknowledgedWriteSurvivesTheProcess(t *testing.T) {
	b := start(t)
	var acknowledged sync.Map
	for round := range 3 {
		url, kill := b.child()
		var writes atomic.Int64
		wrote := func() {
			if writes.Add(1) == int64(10*(round+1)) {
				kill() // while the other writers' calls are under way
			}
		}
		var writers sync.WaitGroup
		for w := range 4 {
			writers.Go(func() { b.writeUntilRefused(url, fmt.Sprintf("r%d-w%d", round, w), &acknowledged, wrote) })
		}
		writers.Wait()
		kill()
	}
	n := 0
	for id := range acknowledged.Range {
		n++
		path, _ := strings.CutPrefix(id.(string), "DELETED ")
		want := 200
		if path != id {
			want = 404
		}
		b.call("GET", path, b.admin, "").want(want)
	}
	t.Logf("%d acknowledged writes", n)
	if n < 10 {
		t.Errorf("only %d writes were acknowledged: nothing was tested", n)
	}
	if apis, last := count(t, b.dsn, "select count(*) from config_revisions"), count(t, b.dsn, "select revision from config_state"); apis != last {
		t.Errorf("%d revisions, the last is %d", apis, last)
	}
}

// writeUntilRefused creates and deletes until the admin is gone, keeps what was
// acknowledged, and calls wrote after each.
func (b *bench) writeUntilRefused(url, name string, acknowledged *sync.Map, wrote func()) {
	away := *b
	away.url = url
	for i := 0; ; i++ {
		id := fmt.Sprintf("%s-%d", name, i)
		r, err := away.try("POST", "/api/apis", b.editor, anAPI(id, "/"+id))
		if err != nil {
			return
		}
		if r.status != 200 {
			b.t.Errorf("%d %s", r.status, r.body)
		}
		path := "/api/apis/" + id
		acknowledged.Store(path, true)
		wrote()
		if i%3 != 0 {
			continue
		}
		// Until the answer comes, nobody knows which it is.
		acknowledged.Delete(path)
		if r, err = away.try("DELETE", path, b.editor, ""); err != nil {
			return
		}
		if r.status != 200 {
			b.t.Errorf("%d %s", r.status, r.body)
		}
		acknowledged.Store("DELETED "+path, true)
		wrote()
	}
}
