package admin

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
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
		Store: st, Keys: newKeyStore(), Counters: counter.NewMemory(nil), KeyOptions: keyOptions(),
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
	return testenv.Child(b.t, childOf+"="+b.DSN)
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
		b.Call("GET", path, b.admin, "").Want(want)
	}
	t.Logf("%d acknowledged writes", n)
	if n < 10 {
		t.Errorf("only %d writes were acknowledged: nothing was tested", n)
	}
	if apis, last := b.Count("select count(*) from config_revisions"), b.Count("select revision from config_state"); apis != last {
		t.Errorf("%d revisions, the last is %d", apis, last)
	}
}

// writeUntilRefused creates and deletes until the admin is gone, keeps what was
// acknowledged, and calls wrote after each.
func (b *bench) writeUntilRefused(url, name string, acknowledged *sync.Map, wrote func()) {
	away := b.At(url)
	for i := 0; ; i++ {
		id := fmt.Sprintf("%s-%d", name, i)
		r, err := away.Try("POST", "/api/apis", b.editor, anAPI(id, "/"+id))
		if err != nil {
			return
		}
		if r.Status != 200 {
			b.t.Errorf("%d %s", r.Status, r.Body)
		}
		path := "/api/apis/" + id
		acknowledged.Store(path, true)
		wrote()
		if i%3 != 0 {
			continue
		}
		// Until the answer comes, nobody knows which it is.
		acknowledged.Delete(path)
		if r, err = away.Try("DELETE", path, b.editor, ""); err != nil {
			return
		}
		if r.Status != 200 {
			b.t.Errorf("%d %s", r.Status, r.Body)
		}
		acknowledged.Store("DELETED "+path, true)
		wrote()
	}
}
