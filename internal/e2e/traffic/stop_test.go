package traffic

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// A gateway that stops says so, takes nothing new, ends what idles, and answers
// what it has.
func TestAStopAnswersWhatIsInFlight(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}, 2), make(chan struct{})
	address := testenv.RawOrigin(t, func(c net.Conn, _ int) {
		var none seen
		br := bufio.NewReader(c)
		for {
			if _, err := none.readRequest(br); err != nil {
				return
			}
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
			_, _ = io.CopyN(c, &pattern{size: 100_000}, 50_000)
			entered <- struct{}{}
			<-leave
			_, _ = io.Copy(c, &pattern{at: 50_000, size: 100_000})
		}
	})
	g := newTraffic(t, nil, nil, rig.APIDef("slow", "http://"+address, true))
	idle, busy := connect(t, g.addr), connect(t, g.addr)
	fmt.Fprint(idle, "GET /none HTTP/1.1\r\nHost: a\r\n\r\n")
	rest := bufio.NewReader(idle)
	resp, err := http.ReadResponse(rest, nil)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
	}
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(busy, "GET /slow/x HTTP/1.1\r\nHost: a\r\n\r\n")
	<-entered
	g.Signal(syscall.SIGTERM)
	if n, err := rest.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("the idle connection: %d bytes, %v", n, err)
	}
	if got := rig.Call(t, "GET", g.Telemetry+"/readyz", nil); got.Status != 503 {
		t.Errorf("while it stops it is ready: %s", got)
	}
	if c, err := net.Dial("tcp", g.addr); err == nil {
		c.Close()
		t.Error("it takes new connections")
	}
	close(leave)
	resp, err = http.ReadResponse(bufio.NewReader(busy), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || n != 100_000 {
		t.Errorf("the call in flight: %d bytes, %v", n, err)
	}
	if code := g.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
