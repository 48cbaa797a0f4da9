package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegate/sluice/internal/cli/client"
	"github.com/sluicegate/sluice/internal/cli/yamltext"
)

// errAdminOnly refuses --gateway to commands that only an admin can do.
var errAdminOnly = errors.New("a gateway cannot do that; name an admin with --server and SLUICE_TOKEN")

// adminHelp is what commands that need an admin say of that.
const adminHelp = `The admin at --server is asked, or the one of this machine if its key can be read
(data_dir/admin.key, or SLUICE_TOKEN).`

// admin returns what calls an admin.
func (s *session) admin(cmd *cobra.Command, t *target) (*client.Client, error) {
	c, isAdmin, err := s.client(cmd, t)
	if err == nil && !isAdmin {
		err = &exitError{ExitUsage, errAdminOnly.Error()}
	}
	return c, err
}

// adminFlags adds the flags that choose an admin.
func (t *target) adminFlags(cmds ...*cobra.Command) {
	for _, cmd := range cmds {
		cmd.Flags().StringVar(&t.server, "server", "", "`URL` of the admin (SLUICE_SERVER)")
		cmd.Flags().StringVar(&t.token, "token", "", "access `KEY` of a user of the admin; rather set SLUICE_TOKEN, which nobody else sees")
	}
}

// request is a call of an admin.
type request struct {
	method, path string
	body         any // sent as JSON, unless it is nil
}

// ask calls an admin and reads its answer into told, which may be nil.
func (s *session) ask(cmd *cobra.Command, t *target, r request, told any) (answer []byte, err error) {
	c, err := s.admin(cmd, t)
	if err != nil {
		return nil, err
	}
	if answer, err = c.Call(cmd.Context(), r.method, r.path, r.body); err != nil {
		return nil, asExit(err)
	}
	if told != nil {
		if err := json.Unmarshal(answer, told); err != nil {
			return nil, fmt.Errorf("reading what %s answers: %w", c.Base(), err)
		}
	}
	return answer, nil
}

// show prints an answer: as a server gave it where machines read it, as table
// makes it for people.
func (s *session) show(answer []byte, table func() error) error {
	switch s.output {
	case "json":
		var b bytes.Buffer
		if err := json.Indent(&b, answer, "", "  "); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
		return s.write(strings.TrimSuffix(b.String(), "\n") + "\n")
	case "yaml":
		text, err := yamltext.Of(answer)
		if err != nil {
			return fmt.Errorf("printing: %w", err)
		}
		return s.write(text)
	}
	return table()
}

// confirm asks whether to go on with what cannot be taken back. Where nobody can
// answer, --yes has to have said so.
func (s *session) confirm(yes bool, what string) error {
	if yes {
		return nil
	}
	if !isTerminal(s.process.Stdin) {
		return &exitError{ExitUsage, what + ": say --yes, as nobody can be asked here"}
	}
	_, _ = fmt.Fprintf(s.process.Stderr, "%s? [y/N] ", what)
	line, _ := bufio.NewReader(s.process.Stdin).ReadString('\n') // no answer is no
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return &exitError{ExitFailed, "left as it is"}
}

// isTerminal tells whether a person is at the other end.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull) // which is a device, too
	return err != nil || !os.SameFile(info, null)
}

// escape makes a text a segment of a path.
func escape(segment string) string { return url.PathEscape(segment) }
