package cli

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/spf13/cobra"
)

// keyView is a key as the admin returns it.
type keyView struct {
	Key  string `json:"key"`
	Hash string `json:"key_hash"`
	Data struct {
		OrgID          string          `json:"org_id"`
		Alias          string          `json:"alias"`
		ApplyPolicies  []string        `json:"apply_policies"`
		AccessRights   json.RawMessage `json:"access_rights"`
		Expires        int64           `json:"expires"`
		IsInactive     bool            `json:"is_inactive"`
		QuotaMax       int64           `json:"quota_max"`
		QuotaRemaining int64           `json:"quota_remaining"`
	} `json:"data"`

	Warnings []string `json:"warnings"`
}

// wantedKey holds the flags of key create.
type wantedKey struct {
	file     string
	policies []string
	alias    string
	expires  time.Duration
}

func (s *session) keyCommand() *cobra.Command {
	t := new(shell.Target)
	var wanted wantedKey
	create := &cobra.Command{
		Use:   "create",
		Short: "Create a key, which is shown only once",
		Long: `Makes a key that carries policies, or has the session in a file. The key is shown
this once: only its hash is kept.

` + shell.AdminHelp,
		Example: "  sluice key create --policy gold --alias ann --expires 720h\n  sluice key create -f session.json",
		Args:    shell.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.createKey(cmd, t, &wanted) },
	}
	f := create.Flags()
	f.StringVarP(&wanted.file, "file", "f", "", "`FILE` with the session as JSON, - for standard input; the other flags add to it")
	f.StringArrayVar(&wanted.policies, "policy", nil, "`ID` of a policy that the key carries; may be repeated")
	f.StringVar(&wanted.alias, "alias", "", "`NAME` of the key for display")
	f.DurationVar(&wanted.expires, "expires", 0, "`TIME` from now until the key ends, such as 720h (default: never)")
	cmds := []*cobra.Command{create, s.listKeysCommand(t), s.syncKeysCommand(t)}
	cmds = append(cmds, s.oneKeyCommands(t)...)
	t.AdminFlags(cmds...)
	group := shell.Group("key", "Create, rotate, list and delete keys", cmds...)
	group.Aliases = []string{"keys"}
	return group
}

func (s *session) syncKeysCommand(t *shell.Target) *cobra.Command {
	return &cobra.Command{
		Use:   "sync",
		Short: "Make the key store of the gateways hold what the database has",
		Long: `Compares the key store of the gateways with the database: keys that the database
does not have are deleted, and those that the store lacks or has otherwise are written.
Used quotas stay. The admin does this by itself when it finds that the database was
restored from a backup.

` + shell.AdminHelp,
		Args: shell.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var found struct{ Written, Deleted, Unchanged int }
			answer, err := s.Ask(cmd, t, shell.Request{Method: "POST", Path: "/api/keys/sync"}, &found)
			if err != nil {
				return err
			}
			return s.Show(answer, func() error {
				return s.Remark("%s written, %d deleted, %d as they were", shell.Plural(found.Written, "key"), found.Deleted, found.Unchanged)
			})
		},
	}
}

func (s *session) listKeysCommand(t *shell.Target) *cobra.Command {
	page := 1
	list := &cobra.Command{
		Use:   "ls",
		Short: "List keys by their hashes",
		Long:  "Lists keys by their hashes, with their policies and limits.\n\n" + shell.AdminHelp,
		Args:  shell.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return s.listKeys(cmd, t, page) },
	}
	list.Flags().IntVar(&page, "page", 1, "`NUMBER` of the page")
	return list
}

// oneKeyCommands are the commands on an existing key.
func (s *session) oneKeyCommands(t *shell.Target) []*cobra.Command {
	grace, yes := 24*time.Hour, false
	get := &cobra.Command{
		Use: "get KEY", Short: "Print a key's session and the rest of its quotas",
		RunE: func(cmd *cobra.Command, args []string) error { return s.getKey(cmd, t, args[0]) },
	}
	rotate := &cobra.Command{
		Use: "rotate KEY", Short: "Create a successor of a key; both are valid for a while and share a quota",
		Example: "  sluice key rotate 3fa9... --grace 24h\n  sluice key retire 3fa9...",
		RunE:    func(cmd *cobra.Command, args []string) error { return s.rotateKey(cmd, t, args[0], grace) },
	}
	rotate.Flags().DurationVar(&grace, "grace", grace, "`TIME` that the key stays valid after its successor is created; 0s ends it at once")
	retire := &cobra.Command{
		Use: "retire KEY", Short: "End the grace period of the keys before the newest at once",
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.changeKey(cmd, t, shell.Request{Method: "DELETE", Path: pathOfKey(args[0], "/rotate")}, "only the newest key is valid now")
		},
	}
	revoke := &cobra.Command{
		Use: "revoke KEY", Short: "Delete a key; it is refused everywhere within a second",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.Confirm(yes, "delete the key for good"); err != nil {
				return err
			}
			return s.revokeKey(cmd, t, args[0])
		},
	}
	revoke.Flags().BoolVar(&yes, "yes", false, "do not ask")
	reset := &cobra.Command{
		Use: "reset-quota KEY", Short: "Reset the used quotas of a key",
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.changeKey(cmd, t, shell.Request{Method: "POST", Path: pathOfKey(args[0], "/reset_quota")}, "the key's quotas are whole again")
		},
	}
	all := []*cobra.Command{get, rotate, retire, revoke, reset}
	for _, cmd := range all {
		cmd.Long = cmd.Short + ".\n\nKEY is the hash of a key, as key ls lists it, or the key itself.\n\n" + shell.AdminHelp
		cmd.Args = func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("want one KEY: a hash as key ls lists it, or the key itself")
			}
			return nil
		}
	}
	return all
}

// pathOfKey returns the path of a key, which is given in clear or as its hash.
func pathOfKey(key, action string) string {
	path := "/api/keys/" + url.PathEscape(key) + action
	if isKeyHash(key) {
		path += "?hashed=true"
	}
	return path
}

// isKeyHash reports whether a text is a hash and not a key: hexadecimal, with the length
// of a supported hash.
func isKeyHash(text string) bool {
	switch len(text) {
	case 8, 16, 32, 64:
		return strings.Trim(text, "0123456789abcdef") == ""
	}
	return false
}

func (s *session) createKey(cmd *cobra.Command, t *shell.Target, wanted *wantedKey) error {
	session, err := s.sessionFor(wanted)
	if err != nil {
		return err
	}
	var made keyView
	answer, err := s.Ask(cmd, t, shell.Request{Method: "POST", Path: "/api/keys", Body: session}, &made)
	if err != nil {
		return err
	}
	return s.Show(answer, func() error {
		s.warn(made.Warnings)
		return s.printNewKey(&made)
	})
}

// printNewKey prints only the key if the output is read by a program.
func (s *session) printNewKey(made *keyView) error {
	if s.Quiet {
		return s.Write(made.Key + "\n")
	}
	return s.Write(fmt.Sprintf("key   %s   (shown once)\nhash  %s\n", made.Key, made.Hash))
}

// sessionFor returns the session that the flags describe.
func (s *session) sessionFor(wanted *wantedKey) (map[string]any, error) {
	session := make(map[string]any)
	if wanted.file != "" {
		data, err := s.ReadInput(wanted.file)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(data, &session); err != nil {
			return nil, shell.Exit(shell.ExitUsage, fmt.Sprintf("%s: is no session in JSON: %v", wanted.file, err))
		}
	}
	if len(wanted.policies) > 0 {
		session["apply_policies"] = wanted.policies
	}
	if wanted.alias != "" {
		session["alias"] = wanted.alias
	}
	if wanted.expires > 0 {
		session["expires"] = time.Now().Add(wanted.expires).Unix()
	}
	if len(session) == 0 {
		return nil, shell.Exit(shell.ExitUsage, "the key needs access rights: --policy ID, or -f FILE with a session")
	}
	return session, nil
}

func (s *session) listKeys(cmd *cobra.Command, t *shell.Target, page int) error {
	var view struct {
		Keys  []keyView `json:"keys"`
		Pages int64     `json:"pages"`
	}
	answer, err := s.Ask(cmd, t, shell.Request{Method: "GET", Path: fmt.Sprintf("/api/keys/detailed?p=%d&page_size=50", page)}, &view)
	if err != nil {
		return err
	}
	return s.Show(answer, func() error {
		data := shell.Rows{Columns: []string{"hash", "alias", "policies", "expires", "state"}}
		for i := range view.Keys {
			k := &view.Keys[i]
			data.Cells = append(data.Cells, []any{k.Hash, k.Data.Alias, strings.Join(k.Data.ApplyPolicies, ","), expiry(k.Data.Expires), stateOf(k)})
		}
		if err := s.Print(data); err != nil || view.Pages <= int64(page) {
			return err
		}
		return s.Remark("page %d of %d", page, view.Pages)
	})
}

func expiry(unix int64) string {
	if unix <= 0 {
		return "never"
	}
	return time.Unix(unix, 0).Local().Format(time.DateTime)
}

func stateOf(k *keyView) string {
	switch {
	case k.Data.IsInactive:
		return "inactive"
	case k.Data.Expires > 0 && k.Data.Expires <= time.Now().Unix():
		return "expired"
	}
	return "valid"
}

func (s *session) getKey(cmd *cobra.Command, t *shell.Target, key string) error {
	answer, err := s.Ask(cmd, t, shell.Request{Method: "GET", Path: pathOfKey(key, "")}, nil)
	if err != nil {
		return err
	}
	return s.ShowWhole(answer)
}

func (s *session) rotateKey(cmd *cobra.Command, t *shell.Target, key string, grace time.Duration) error {
	var made keyView
	answer, err := s.Ask(cmd, t, shell.Request{Method: "POST", Path: pathOfKey(key, "/rotate"), Body: map[string]string{"grace": grace.String()}}, &made)
	if err != nil {
		return err
	}
	return s.Show(answer, func() error {
		if err := s.printNewKey(&made); err != nil || s.Quiet {
			return err
		}
		return s.Remark("the key before stays valid for %s", grace)
	})
}

// revokeKey deletes a key, and says in which gateways that is in force.
func (s *session) revokeKey(cmd *cobra.Command, t *shell.Target, key string) error {
	var done struct {
		Meta *struct {
			InForce  int `json:"in_force"`
			Gateways int
			Missing  []string
		}
	}
	answer, err := s.Ask(cmd, t, shell.Request{Method: "DELETE", Path: pathOfKey(key, "")}, &done)
	if err != nil {
		return err
	}
	return s.Show(answer, func() error {
		text := "the key is deleted"
		switch m := done.Meta; {
		case m == nil:
			text += "; it is unknown in which gateways that is in force"
		case len(m.Missing) > 0:
			text += fmt.Sprintf("; in force on %d of %s; missing: %s", m.InForce, shell.Plural(m.Gateways, "gateway"), strings.Join(m.Missing, ", "))
		default:
			text += fmt.Sprintf("; in force on %d of %s", m.InForce, shell.Plural(m.Gateways, "gateway"))
		}
		return s.Remark("%s", text)
	})
}

// changeKey makes a change and confirms it.
func (s *session) changeKey(cmd *cobra.Command, t *shell.Target, r shell.Request, done string) error {
	answer, err := s.Ask(cmd, t, r, nil)
	if err != nil {
		return err
	}
	return s.Show(answer, func() error { return s.Remark("%s", done) })
}
