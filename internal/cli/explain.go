package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/spf13/cobra"
)

// maxSent bounds a body that is read from a file, in bytes.
const maxSent = 3 << 20

// asked is a request to explain, in the form of the REST API.
type asked struct {
	ID       string   `json:"id,omitempty"`
	Method   string   `json:"method,omitempty"`
	URL      string   `json:"url,omitempty"`
	Headers  []string `json:"headers,omitempty"`
	Body     string   `json:"body,omitempty"`
	Bytes    []byte   `json:"body_base64,omitempty"`
	Key      string   `json:"key,omitempty"`
	KeyHash  string   `json:"key_hash,omitempty"`
	Client   string   `json:"client,omitempty"`
	TLS      *bool    `json:"tls,omitempty"`
	Revision int64    `json:"revision,omitempty"`
	At       string   `json:"at,omitempty"`

	Certificate string `json:"certificate,omitempty"`
}

func (s *session) explainCommand() *cobra.Command {
	var a asked
	var t shell.Target
	data, cert, at, tls, facts := "", "", "", false, false
	cmd := &cobra.Command{
		Use:   "explain METHOD URL",
		Short: "Explain how a request would be handled, and why",
		Long: `Runs a request through the stages of a real one, and prints what
each of them decides: by which rule, with what value, and where that value comes
from. Nothing is sent upstream, counted or logged. With --id it explains why a
request was refused: the id is the X-Request-Id of the response.

With --at it explains the request at another time: after keys and versions have
expired or begun, and quotas have renewed, if nothing else is counted. A time in
the past is explained with the revision of that time. Decisions that the server
cannot know for another time are listed as untold, and count as not refusing.

URL is that of the request, or a path. A body that is JSON is sent as
application/json unless -H says otherwise.

` + shell.TargetHelp + `

Exit code 0 means that the request would be let through, 5 that it would be, or
was, refused; 6 that the server does not accept the description.`,
		Example: `  sluice explain GET /orders/7 --key slk_...
  sluice explain POST /countries/ --key-hash 3fa9... -d '{"query":"{ countries { name } }"}'
  sluice explain GET https://api.example/orders -H 'X-Version: v2' --revision 41
  sluice explain --id 7c0e4b1f9a2d4e6fb85a0c3d1e2f4a5b`,
		Args: func(_ *cobra.Command, args []string) error { return a.setArgs(args) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("tls") {
				a.TLS = &tls
			}
			if cert != "" {
				shown, err := readCertificate(cert)
				if err != nil {
					return err
				}
				a.Certificate = shown
			}
			if err := s.readBody(&a, data); err != nil {
				return err
			}
			moment, err := momentOf(at, time.Now())
			if err != nil {
				return shell.InFlag("--at", err)
			}
			a.At = moment
			return s.explain(cmd, &t, &a, facts)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&data, "data", "d", "", "`BODY` of the request, @FILE to read it from a file, @- from standard input")
	f.StringArrayVarP(&a.Headers, "header", "H", nil, "header `LINE` such as 'Name: value'; may be repeated")
	f.StringVar(&a.Key, "key", "", "`KEY` of the caller, sent where the API looks for keys")
	f.StringVar(&a.KeyHash, "key-hash", "", "`HASH` of the caller's key, if the key itself is not available")
	f.StringVar(&a.Client, "client", "", "`ADDRESS` of the client (default 127.0.0.1)")
	f.BoolVar(&tls, "tls", false, "the request comes over TLS (default: when URL begins with https)")
	f.StringVar(&cert, "cert", "", "PEM `FILE` with the client certificate; its private key is not needed")
	f.Int64Var(&a.Revision, "revision", 0, "`NUMBER` of the revision to explain with (default: the current one)")
	f.StringVar(&at, "at", "", "`TIME` to explain for: 2030-01-02T15:04:05Z, '2030-01-02 15:04' here, +36h or -15m (default: now)")
	f.StringVar(&a.ID, "id", "", "`ID` of a request that was refused, in place of METHOD and URL")
	f.BoolVar(&facts, "facts", false, "print what every stage looked at, not only of one that refuses")
	t.Flags(cmd)
	return cmd
}

func (a *asked) setArgs(args []string) error {
	switch {
	case a.ID != "" && len(args) > 0:
		return fmt.Errorf("--id names the request; leave out %q", strings.Join(args, " "))
	case a.ID != "":
	case len(args) == 1 && strings.ContainsAny(args[0], "/"):
		a.URL = args[0]
	case len(args) != 2:
		return fmt.Errorf("want METHOD and URL, such as GET /orders/7, or --id ID")
	default:
		a.Method, a.URL = args[0], args[1]
	}
	return nil
}

// readBody returns the body given with -d.
func (s *session) readBody(a *asked, data string) error {
	name, isFile := strings.CutPrefix(data, "@")
	if isFile {
		from := s.Stdin
		if name != "-" {
			file, err := os.Open(name)
			if err != nil {
				return shell.Exit(shell.ExitUsage, fmt.Sprintf("-d %s: %v", data, shell.BareCause(err)))
			}
			defer file.Close()
			from = file
		}
		read, err := io.ReadAll(io.LimitReader(from, maxSent+1))
		if err != nil {
			return fmt.Errorf("-d %s: %w", data, err)
		}
		data = string(read)
	}
	if len(data) > maxSent {
		return shell.Exit(shell.ExitUsage, fmt.Sprintf("-d: the body is larger than %d MiB", maxSent>>20))
	}
	if data == "" {
		return nil
	}
	if utf8.ValidString(data) {
		a.Body = data
	} else {
		a.Bytes = []byte(data)
	}
	if json.Valid([]byte(data)) && !a.has("Content-Type") {
		a.Headers = append(a.Headers, "Content-Type: application/json")
	}
	return nil
}

func (a *asked) has(name string) bool {
	for _, line := range a.Headers {
		if given, _, _ := strings.Cut(line, ":"); strings.EqualFold(given, name) {
			return true
		}
	}
	return false
}

// explain requests an explanation from a server and prints it.
func (s *session) explain(cmd *cobra.Command, t *shell.Target, a *asked, facts bool) error {
	c, admin, err := s.Client(cmd, t)
	if err != nil {
		return err
	}
	path := "/svc/explain"
	if admin {
		path = "/api/explain"
	}
	answer, err := c.Call(cmd.Context(), "POST", path, a)
	if err != nil {
		return shell.AsExit(err)
	}
	var view explanation
	if err := json.Unmarshal(answer, &view); err != nil {
		return fmt.Errorf("reading what %s answers: %w", c.Base(), err)
	}
	if err := s.printExplanation(&view, answer, facts); err != nil {
		return err
	}
	if view.Refusal != nil || !view.Outcome.Allowed {
		return shell.Exit(shell.ExitDifferences, "")
	}
	return nil
}

func (s *session) printExplanation(view *explanation, answer []byte, facts bool) error {
	return s.Show(answer, func() error {
		if view.Refusal != nil {
			return s.Write(view.Refusal.text())
		}
		return s.Write(view.text(facts))
	})
}
