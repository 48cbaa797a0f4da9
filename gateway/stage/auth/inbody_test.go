package auth

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv/race"
)

func usersInBodies() *definition.API {
	def := usersOnly("a")
	def.BasicAuth = &definition.BasicAuthSettings{ExtractFromBody: true, BodyUser: `<User>([^<]*)</User>`, BodyPassword: `<Password>([^<]*)</Password>`}
	return def
}

// sent is an exchange with a body, which is at hand or comes in pieces.
func sent(body string, streamed bool, lines ...string) *pipeline.Exchange {
	call := &wire.Call{Started: time.Now()}
	if len(lines) > 0 {
		call.SetLines([]byte(strings.Join(lines, "\r\n") + "\r\n"))
	}
	if streamed {
		call.Stream, call.Length = io.NopCloser(iotest.HalfReader(strings.NewReader(body))), -1
	} else {
		call.Body, call.Length = []byte(body), int64(len(body))
	}
	return pipeline.For(call)
}

func TestUsersAreFoundInBodies(t *testing.T) {
	st := newStore()
	enrol(t, st, "org1", "bob", "secret", nil)
	enrol(t, st, "org1", "off", "secret", func(s *definition.Session) { s.IsInactive = true })
	a := New(NewSessions(options(st)), 3).WithPasswords(verifier()).WithBodies(1000)
	s := compiled(t, a, usersInBodies()).(*stage)
	m := s.modes[0].(*passwordMode)
	login := func(user, password string) string {
		return "<Login><User>" + user + "</User><Password>" + password + "</Password></Login>"
	}
	header := "Authorization: " + shows("bob", "secret")
	for _, c := range []struct {
		name, body string
		lines      []string
		want       *pipeline.Rejection
	}{
		{"nothing", "", nil, noName},
		{"no name", "<Password>secret</Password>", nil, noName},
		{"an empty name", login("", "secret"), nil, noName},
		{"no password", "<User>bob</User>", nil, noPassword},
		{"an empty password", login("bob", ""), nil, noPassword},
		{"right", login("bob", "secret"), nil, nil},
		{"the first of two", login("bob", "secret") + login("ann", "x"), nil, nil},
		{"wrong", login("bob", "x"), nil, m.wrong},
		{"nobody", login("ann", "secret"), nil, m.wrong},
		{"the organisation before the name", login("org1bob", "secret"), nil, m.wrong},
		{"a colon in the name", login("bob:secret", "secret"), nil, m.wrong},
		{"inactive", login("off", "secret"), nil, inactive},
		{"in the header", "", []string{header}, nil},
		{"in the header, which goes before the body", login("bob", "x"), []string{header}, nil},
		{"in the header, and wrong", login("bob", "secret"), []string{"Authorization: " + shows("bob", "x")}, m.wrong},
		{"another scheme in the header", login("bob", "secret"), []string{"Authorization: Bearer x"}, nil},
		{"another scheme in the header, and no body", "", []string{"Authorization: Bearer x"}, noName},
		{"as much as is looked through", login("bob", "secret") + strings.Repeat(" ", 1000-len(login("bob", "secret"))), nil, nil},
		{"more than is looked through", login("bob", "secret") + strings.Repeat(" ", 1001-len(login("bob", "secret"))), nil, bodyTooLarge},
	} {
		for _, streamed := range []bool{false, true} {
			for range 2 {
				ex := sent(c.body, streamed, c.lines...)
				v := s.Handle(ex)
				if ex.Rejection != c.want || (v == pipeline.Next) != (c.want == nil) {
					t.Errorf("%s: verdict %d, rejection %+v", c.name, v, ex.Rejection)
				}
				if c.want == nil && (ex.Session.Alias != "bob" || string(ex.Token) != "org1bob") {
					t.Errorf("%s: %+v, token %q", c.name, ex.Session, ex.Token)
				}
				if len(c.lines) == 0 && v == pipeline.Next && (string(ex.Call.Body) != c.body || ex.Call.Stream != nil || ex.Call.Length != int64(len(c.body))) {
					t.Errorf("%s: %q goes on", c.name, ex.Call.Body)
				}
				f := pipeline.Finding{Verdict: v}
				s.Explain(ex, &f)
				if (f.Fix == "") != (c.want == nil) || strings.Contains(f.Fix, "secret") {
					t.Errorf("%s: explained as %+v", c.name, f)
				}
			}
		}
	}
	if m.wrong.Challenge != "" || m.wrong.Status != 401 || noName.Status != 400 {
		t.Errorf("%+v, %+v", m.wrong, noName)
	}
}

func TestABodyThatDoesNotArriveIsToldAsThat(t *testing.T) {
	s := compiled(t, New(NewSessions(options(newStore())), 3).WithPasswords(verifier()), usersInBodies())
	for err, want := range map[error]*pipeline.Rejection{
		wire.ErrBodyTooLarge: bodyTooLarge, wire.ErrBodyOverLimit: bodyOverSize, wire.ErrBodyMalformed: bodyUnframed,
		os.ErrDeadlineExceeded: bodyTooSlow, io.ErrUnexpectedEOF: bodyLost,
	} {
		ex := sent("", true)
		ex.Call.Stream = io.NopCloser(io.MultiReader(strings.NewReader("<User>bob"), iotest.ErrReader(err)))
		if s.Handle(ex); ex.Rejection != want {
			t.Errorf("%v: %+v", err, ex.Rejection)
		}
	}
	ex := sent("", true)
	ex.Call.Length = defaultMaxBody + 1 // which is not waited for
	ex.Call.Stream = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF))
	if s.Handle(ex); ex.Rejection != bodyTooLarge {
		t.Errorf("announced as too large: %+v", ex.Rejection)
	}
}

func TestExpressionsThatCannotBeUsedAreNamed(t *testing.T) {
	a := New(NewSessions(options(newStore())), 3).WithPasswords(verifier())
	for path, break_ := range map[string]func(*definition.BasicAuthSettings){
		"basic_auth.body_user_regexp":     func(s *definition.BasicAuthSettings) { s.BodyUser = "(" },
		"basic_auth.body_password_regexp": func(s *definition.BasicAuthSettings) { s.BodyPassword = "" },
	} {
		def := usersInBodies()
		break_(def.BasicAuth)
		if _, err := a.Compile(def); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%v, want %s", err, path)
		}
	}
}

func TestAWarmUserInABodyDoesNotAllocate(t *testing.T) {
	st := newStore()
	enrol(t, st, "org1", "bob", "secret", nil)
	s := compiled(t, New(NewSessions(options(st)), 3).WithPasswords(verifier()), usersInBodies())
	call := sent(strings.Repeat("<a/>", 500)+"<User>bob</User><Password>secret</Password>", false).Call
	run := func() {
		ex := pipeline.For(call)
		if s.Handle(ex) != pipeline.Next {
			t.Fatal(ex.Rejection)
		}
		ex.Release()
	}
	run()
	if n := testing.AllocsPerRun(1000, run); n != 0 && !race.Enabled { // with the race detector on, pools drop what they hold at random
		t.Errorf("%v allocations", n)
	}
}

// FuzzInBody holds what is found in a body against the body itself.
func FuzzInBody(f *testing.F) {
	for _, seed := range []string{"", "<User>bob</User><Password>x</Password>", "<User></User>", "<User>a:b</User>\x00<Password>\xff</Password>"} {
		f.Add([]byte(seed))
	}
	b, err := newInBody(usersInBodies().BasicAuth, 4096)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		ex := sent(string(body), false)
		all, colon, refused := b.find([]byte("org"), ex.Call)
		if refused != nil {
			return
		}
		if !bytes.HasPrefix(all, []byte("org")) || all[colon] != ':' ||
			!bytes.Contains(body, []byte("<User>"+string(all[3:colon])+"</User>")) ||
			!bytes.Contains(body, []byte("<Password>"+string(all[colon+1:])+"</Password>")) {
			t.Fatalf("%q holds %q", body, all)
		}
	})
}
