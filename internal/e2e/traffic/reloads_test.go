package traffic

import (
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/valyala/fasthttp"
)

// stated is an API whose every stage says which state it is of: a header of the
// request, the path of the upstream, and two headers of the answer.
func stated(id, target string, state int) object {
	api := rig.APIDef(id, fmt.Sprint(target, "/", state), true)
	text := strconv.Itoa(state)
	api["version_data"] = object{"not_versioned": true, "versions": object{"Default": object{
		"name": "Default", "global_headers": object{"X-State": text},
		"global_response_headers": object{"X-State-One": text, "X-State-Two": text},
	}}}
	return api
}

// stateOf returns the state that an answer is of. One of several is an error.
func stateOf(got rig.Answer, err error) (int, error) {
	if err = rig.Want(200, got, err); err != nil {
		return 0, err
	}
	says := fmt.Sprintf("%s %[1]s %[1]s %[1]s", got.Header.Get("X-State-One"))
	if told := fmt.Sprint(got.Header.Get("X-State-One"), " ", got.Header.Get("X-State-Two"), " ", got.Body); told != says {
		return 0, fmt.Errorf("an answer of several states: %q", told)
	}
	return strconv.Atoi(got.Header.Get("X-State-One"))
}

// stateOrigin answers with the state that it is told in the path, and in a header.
func stateOrigin(t *testing.T) string {
	return "http://" + testenv.Origin(t, func(ctx *fasthttp.RequestCtx) {
		state, _, _ := strings.Cut(strings.TrimPrefix(string(ctx.Path()), "/"), "/")
		fmt.Fprintf(ctx, "%s %s", state, ctx.Request.Header.Peek("X-State"))
	})
}

// isIn fails unless an API is in a state.
func (g *traffic) isIn(state int, api string) error {
	at, err := stateOf(rig.Send(http.MethodGet, g.Traffic+"/"+api+"/x", nil))
	if err == nil && at != state {
		err = fmt.Errorf("it is in state %d", at)
	}
	return err
}

// A gateway may be told to reload as soon as anybody can see that it is there.
func TestAHangupAsSoonAsItListensIsHeard(t *testing.T) {
	target := stateOrigin(t)
	g := newTraffic(t, settings{"gateway.watch": "false"}, nil, stated("busy", target, 0))
	for state := 1; state < 6; state++ {
		g.Kill()
		g.Start()
		for !listens(g.addr) {
			if g.HasEnded() {
				t.Fatal("it ended")
			}
		}
		rig.SaveJSON(t, filepath.Join(g.Settings["gateway.apps_dir"], "busy.json"), stated("busy", target, state))
		g.Signal(syscall.SIGHUP)
		g.Await(fmt.Sprintf("state %d", state), func() error { return g.isIn(state, "busy") })
	}
}

func listens(addr string) bool {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was said
	return true
}

// An answer is of the state that was in force when its request came, or of one that
// came since, and of that alone.
func TestEveryAnswerIsOfOneStateWhateverIsReloaded(t *testing.T) {
	const reloads = 100
	for _, raw := range []string{"true", "false"} {
		t.Run("upstream.raw_io "+raw, func(t *testing.T) {
			t.Parallel()
			target := stateOrigin(t)
			g := newTraffic(t, settings{"upstream.raw_io": raw, "gateway.watch": "false"}, nil, stated("busy", target, 0), stated("other", target, 0))
			var inForce, written atomic.Int64
			load := rig.StartLoad(t, 8, func(client *http.Client, n int) error {
				least := inForce.Load()
				got, err := rig.SendBy(client, http.MethodGet, g.Traffic+"/busy/x", nil)
				state, err := stateOf(got, err)
				if most := written.Load(); err == nil && (int64(state) < least || int64(state) > most) {
					err = fmt.Errorf("an answer of state %d, want %d to %d", state, least, most)
				}
				return err
			})
			for i := range reloads {
				id, state := []string{"busy", "other"}[i%2], i/2+1
				if id == "busy" {
					written.Store(int64(state))
				}
				rig.SaveJSON(t, filepath.Join(g.Settings["gateway.apps_dir"], id+".json"), stated(id, target, state))
				g.Signal(syscall.SIGHUP)
				rig.Eventually(t, fmt.Sprintf("state %d of %s", state, id), func() error { return g.isIn(state, id) })
				if id == "busy" {
					inForce.Store(int64(state))
				}
			}
			load.AwaitMore(1)
			if n := load.Stop(); n < reloads {
				t.Errorf("only %d requests during %d reloads", n, reloads)
			}
		})
	}
}
