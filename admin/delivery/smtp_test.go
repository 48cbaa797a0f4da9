package delivery

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
)

// postOffice is an SMTP server that takes letters and says what it is told to.
type postOffice struct {
	cert     tls.Certificate
	implicit bool              // TLS from the first byte
	plain    bool              // STARTTLS is not offered
	says     map[string]string // answer to a command instead of the usual one; "hang" says nothing, "cut" closes

	mu      sync.Mutex
	taken   []string // letters
	secured bool     // the last letter came over TLS
	login   string   // what was shown last
}

func (o *postOffice) open(t *testing.T) *MailServer {
	t.Helper()
	address := testenv.RawOrigin(t, func(conn net.Conn, _ int) { o.serve(conn) })
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	s := &MailServer{Host: host, TLS: "starttls", From: "portal@example.com", Timeout: 5 * time.Second}
	if _, err := fmt.Sscan(port, &s.Port); err != nil {
		t.Fatal(err)
	}
	return s
}

func (o *postOffice) serve(conn net.Conn) {
	secured := o.implicit
	if o.implicit {
		conn = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{o.cert}})
	}
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	say := func(command, usual string) bool {
		text := usual
		if told, ok := o.says[command]; ok {
			text = told
		}
		if text == "cut" {
			return false
		}
		if text != "hang" {
			_, _ = fmt.Fprintf(conn, "%s\r\n", text)
		}
		return true
	}
	if !say("", "220 post office") {
		return
	}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		command, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(line)), " ")
		usual := "250 ok"
		switch command {
		case "EHLO":
			usual = "250-post office\r\n"
			if !secured && !o.plain {
				usual += "250-STARTTLS\r\n"
			}
			usual += "250-AUTH PLAIN\r\n250 8BITMIME"
		case "STARTTLS":
			if !say(command, "220 go ahead") {
				return
			}
			conn = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{o.cert}})
			in, secured = bufio.NewReader(conn), true
			continue
		case "AUTH":
			o.mu.Lock()
			o.login = strings.TrimSpace(line)
			o.mu.Unlock()
			usual = "235 in"
		case "DATA":
			if !say("DATA", "354 go on") {
				return
			}
			if _, told := o.says["DATA"]; told {
				continue
			}
			letter, err := readLetter(in)
			if err != nil {
				return
			}
			if _, told := o.says["END"]; !told {
				o.mu.Lock()
				o.taken, o.secured = append(o.taken, letter), secured
				o.mu.Unlock()
			}
			command = "END"
		case "QUIT":
			usual = "221 bye"
		}
		if !say(command, usual) {
			return
		}
	}
}

func readLetter(in *bufio.Reader) (string, error) {
	var letter strings.Builder
	for {
		line, err := in.ReadString('\n')
		if err != nil || line == ".\r\n" {
			return letter.String(), err
		}
		letter.WriteString(line)
	}
}

func aLetter(t *testing.T) Delivery {
	t.Helper()
	payload, err := json.Marshal(letterMessage{FromName: "Ann, of the API", To: "dev@example.org", Subject: "Zugang für dich", Text: "Hello\n", HTML: "<p>Hello</p>\n"})
	if err != nil {
		t.Fatal(err)
	}
	return Delivery{ID: "msg_1", Kind: Letter, Payload: payload, Created: time.Unix(1_800_000_000, 0).UTC()}
}

func TestALetterIsSentOverTLS(t *testing.T) {
	authority := testenv.NewAuthority(t, "post office")
	cert := authority.Server("127.0.0.1").TLS
	for _, c := range []struct {
		kind     string
		implicit bool
	}{{"starttls", false}, {"tls", true}} {
		office := &postOffice{cert: cert, implicit: c.implicit}
		server := office.open(t)
		server.TLS, server.Roots, server.User, server.Password = c.kind, authority.Pool(), "ann", secret.New("pass word")
		if out := server.Send(t.Context(), aLetter(t)); out.Result != Done {
			t.Fatalf("%s: %+v", c.kind, out)
		}
		want := "AUTH PLAIN " + base64.StdEncoding.EncodeToString([]byte("\x00ann\x00pass word"))
		if len(office.taken) != 1 || !office.secured || office.login != want {
			t.Fatalf("%s: %d letters, secured %v, login %q", c.kind, len(office.taken), office.secured, office.login)
		}
		for _, line := range []string{
			"Message-ID: <msg_1@example.com>", `From: "Ann, of the API" <portal@example.com>`, "To: <dev@example.org>",
			"Subject: =?UTF-8?q?Zugang_f=C3=BCr_dich?=", "Auto-Submitted: auto-generated", "Date: Fri, 15 Jan 2027 08:00:00 +0000",
			"Content-Type: text/plain", "Content-Type: text/html",
		} {
			if !strings.Contains(office.taken[0], line) {
				t.Errorf("%s: %q is not in\n%s", c.kind, line, office.taken[0])
			}
		}
	}
}

func TestALetterDoesNotLeaveUnsecured(t *testing.T) {
	authority := testenv.NewAuthority(t, "post office")
	office := &postOffice{cert: authority.Server("127.0.0.1").TLS}
	server := office.open(t) // whose certificate nobody vouches for
	if out := server.Send(t.Context(), aLetter(t)); out.Result != Again || !strings.Contains(out.Error, "certificate") {
		t.Errorf("with an unknown authority: %+v", out)
	}
	bare := &postOffice{plain: true}
	server = bare.open(t)
	server.User, server.Password = "ann", secret.New("pass word")
	if out := server.Send(t.Context(), aLetter(t)); out.Result != Again {
		t.Errorf("without STARTTLS: %+v", out)
	}
	if len(office.taken)+len(bare.taken) > 0 || bare.login != "" {
		t.Error("a letter or a password went over an open line")
	}
	server.TLS = "none" // on the operator's word
	if out := server.Send(t.Context(), aLetter(t)); out.Result != Done || bare.login == "" {
		t.Errorf("with TLS none: %+v", out)
	}
}

func TestWhatTheServerSaysDecides(t *testing.T) {
	for _, c := range []struct {
		command, answer string
		want            Result
		status          int
	}{
		{"RCPT", "550 no such user", Never, 550},
		{"RCPT", "450 try later", Again, 450},
		{"MAIL", "550 who are you", Again, 550}, // the sender's address is for the operator to mend
		{"DATA", "554 no", Never, 554},
		{"END", "552 too much", Never, 552},
		{"END", "451 disk is full", Again, 451},
		{"", "421 busy", Again, 0},
		{"EHLO", "cut", Again, 0},
		{"RCPT", "cut", Again, 0},
		{"END", "cut", Again, 0},
	} {
		office := &postOffice{plain: true, says: map[string]string{c.command: c.answer}}
		server := office.open(t)
		server.TLS = "none"
		out := server.Send(t.Context(), aLetter(t))
		if out.Result != c.want || c.status != 0 && out.Status != c.status || out.Error == "" {
			t.Errorf("%s answered %q: %+v", c.command, c.answer, out)
		}
	}
}

func TestALetterThatWasTakenIsNotSentAgain(t *testing.T) {
	office := &postOffice{plain: true, says: map[string]string{"QUIT": "cut"}}
	server := office.open(t)
	server.TLS = "none"
	if out := server.Send(t.Context(), aLetter(t)); out.Result != Done || len(office.taken) != 1 {
		t.Errorf("%+v, %d letters", out, len(office.taken))
	}
}

func TestASilentServerIsLeft(t *testing.T) {
	for _, command := range []string{"", "EHLO", "END"} {
		office := &postOffice{plain: true, says: map[string]string{command: "hang"}}
		server := office.open(t)
		server.TLS, server.Timeout = "none", 300*time.Millisecond
		if out := server.Send(t.Context(), aLetter(t)); out.Result != Again {
			t.Errorf("silent at %q: %+v", command, out)
		}
	}
}

func TestALoginThatFailsIsTriedAgain(t *testing.T) {
	office := &postOffice{plain: true, says: map[string]string{"AUTH": "535 no"}}
	server := office.open(t)
	server.TLS, server.User, server.Password = "none", "ann", secret.New("pass word")
	out := server.Send(t.Context(), aLetter(t))
	if out.Result != Again || strings.Contains(out.Error, "pass word") || len(office.taken) > 0 {
		t.Errorf("%+v", out)
	}
}
