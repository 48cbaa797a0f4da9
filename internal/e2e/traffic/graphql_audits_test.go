package traffic

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// audit is what the audits of GraphQL over HTTP found in one respect: status is
// ok, notice (a MAY), warn (a SHOULD) or error (a MUST).
type audit struct{ ID, Name, Status, Reason string }

// auditor is a GraphQL server by the reference implementation of GraphQL over
// HTTP, with that implementation's audits of other servers.
type auditor struct {
	t   *testing.T
	url string
	in  io.Writer
	out *bufio.Reader
}

func newAuditor(t *testing.T) *auditor {
	t.Helper()
	node := exec.Command("node", "audits.mjs")
	node.Dir, node.Stderr, node.SysProcAttr = testenv.NodeModules(t), os.Stderr, testenv.ChildAttr(syscall.SIGKILL)
	in, err := node.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	a := &auditor{t: t, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		_ = in.Close() // which ends it
		if err := node.Wait(); err != nil {
			t.Errorf("the auditor: %v", err)
		}
	})
	a.url = strings.TrimSpace(a.line())
	return a
}

func (a *auditor) line() string {
	a.t.Helper()
	line, err := a.out.ReadString('\n')
	if err != nil {
		a.t.Fatalf("the auditor: %v", err)
	}
	return line
}

// audit returns all that the audits say of a URL.
func (a *auditor) audit(url string) (all []audit) {
	a.t.Helper()
	if _, err := io.WriteString(a.in, url+"\n"); err != nil {
		a.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(a.line()), &all); err != nil {
		a.t.Fatal(err)
	}
	return all
}

// notFollowed are the audits that the gateway does not pass as it is set up by
// default, with the reason. None of them is a MUST.
var notFollowed = map[string]string{
	"572B": onStatus, "FDE2": onStatus, "7B9B": onStatus,
}

// onStatus is why invalid operations are not answered with 200.
const onStatus = "an invalid operation is answered with 400 whatever the client accepts, unless graphql.legacy_json_200 is set"

// An API behind the gateway is a GraphQL server as the specification of GraphQL
// over HTTP has it.
func TestTheAuditsOfGraphQLOverHTTP(t *testing.T) {
	t.Parallel()
	a := newAuditor(t)
	const schema = `type Query { hello(name: String = "world"): String! } type Mutation { shout(text: String!): String! }`
	g := newTraffic(t, nil, nil,
		rig.GraphDef("strict", a.url, true, object{"schema": schema}),
		rig.GraphDef("lenient", a.url, true, object{"schema": schema, "legacy_json_200": true}))
	for id, excused := range map[string]map[string]string{"strict": notFollowed, "lenient": {}} {
		counts := make(map[string]int)
		for _, one := range a.audit(g.Traffic + "/" + id + "/") {
			counts[one.Status]++
			if one.Status != "ok" && excused[one.ID] == "" || one.Status == "error" {
				t.Errorf("%s: %s %s: %s: %s", id, one.ID, one.Name, one.Status, one.Reason)
			}
			if one.Status == "ok" && excused[one.ID] != "" {
				t.Errorf("%s: %s %s passes; take its excuse away", id, one.ID, one.Name)
			}
		}
		t.Logf("%s: %v", id, counts)
		if counts["ok"]+len(excused) != 61 {
			t.Errorf("%s: %v audits, want 61", id, counts)
		}
	}
	own := g.Traffic + "/strict/"
	if got := rig.Call(t, "POST", own, rig.QueryBody(`mutation { shout(text: "up") }`), "Content-Type", rig.JSONMedia); got.Body != `{"data":{"shout":"UP"}}` {
		t.Errorf("the server behind it answers %s", got)
	}
}
