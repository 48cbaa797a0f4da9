package cli

import (
	"context"
	"time"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/spf13/cobra"
)

// A Rotation has the options of a rotation of the master key.
type Rotation struct {
	DryRun   bool
	Progress func(done, total int) // called after each page of values
}

// Rotated is the result of a rotation of the master key.
type Rotated struct {
	Former, New string // ids of the keys, which do not reveal them
	Kept        string // file with the new key; "" if it is configured
	Tables      []RotatedTable
}

// A RotatedTable counts the values of a table by the key that they are sealed with.
type RotatedTable struct {
	Table       string
	New, Former int
}

// Rotate rotates the master key of the configured database.
type Rotate func(ctx context.Context, cfg *config.Config, how Rotation) (*Rotated, error)

// secretsCommands are the commands on the key that seals secrets in the database.
type secretsCommands struct {
	*shell.Shell
	rotate      Rotate
	former, new string // files
	dryRun      bool
}

// secretsCommand returns the command group for secrets.
func secretsCommand(s *shell.Shell, rotate Rotate, databaseURL shell.Setting) *cobra.Command {
	r := &secretsCommands{Shell: s, rotate: rotate}
	settings := []shell.Setting{
		databaseURL, {Flag: "data-dir", Key: "data_dir", Usage: "`DIR` of a private database, and of generated keys"},
	}
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Encrypt all secrets in the database with a new master key",
		Long: `Encrypts again what the database holds under the former master key: private keys of
certificates, secrets of webhooks, messages that hold a credential, and the like.

Where admin.master_key is configured: set it to the new key and
admin.former_master_key to the previous one on every admin, and restart them. They
read both from then on. Then run this command and remove admin.former_master_key.

Otherwise the key is data_dir/master.key: stop the server, run this command, which
replaces it by a new key, and start the server again.

It works on the database directly, page by page. If it is interrupted,
every secret stays readable, and another run continues. If values can be decrypted with
neither key, they are listed and nothing is changed.`,
		Example: "  sluice secrets rotate --database-url postgres://db.internal/sluice --former-key-file old --new-key-file new\n  sluice secrets rotate --dry-run",
		Args:    shell.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return r.run(cmd, settings) },
	}
	shell.AddSettings(cmd, settings)
	f := cmd.Flags()
	f.StringVar(&r.former, "former-key-file", "", "`FILE` with the former key (admin.former_master_key)")
	f.StringVar(&r.new, "new-key-file", "", "`FILE` with the new key (admin.master_key)")
	f.BoolVar(&r.dryRun, "dry-run", false, "check that every secret can be decrypted, and change nothing")
	shell.Must(cmd.MarkFlagFilename("former-key-file"))
	shell.Must(cmd.MarkFlagFilename("new-key-file"))
	return shell.Group("secrets", "Rotate the key that encrypts secrets in the database", cmd)
}

func (r *secretsCommands) run(cmd *cobra.Command, settings []shell.Setting) error {
	for variable, file := range map[string]string{"SLUICE_ADMIN_FORMER_MASTER_KEY_FILE": r.former, "SLUICE_ADMIN_MASTER_KEY_FILE": r.new} {
		if file != "" {
			r.Env = append(r.Env, variable+"="+file)
		}
	}
	cfg, _, err := r.Load(cmd, config.AnyRole, settings...)
	if err != nil {
		return err
	}
	bar := shell.NewBar(r.Stderr, shell.IsTerminal(r.Stderr), "sealed values", time.Now)
	how := Rotation{DryRun: r.dryRun, Progress: bar.Set}
	if r.Quiet {
		how.Progress = nil
	}
	done, err := r.rotate(cmd.Context(), cfg, how)
	bar.End()
	if err != nil {
		return err
	}
	return r.tell(done)
}

func (r *secretsCommands) tell(done *Rotated) error {
	data, left := shell.Rows{Columns: []string{"table", "sealed_anew", "already"}}, 0
	for _, c := range done.Tables {
		data.Cells = append(data.Cells, []any{c.Table, c.Former, c.New})
		left += c.Former
	}
	if err := r.Print(data); err != nil || r.Output != "table" {
		return err
	}
	switch {
	case r.dryRun:
		return r.Remark("%s would be sealed anew, of key %s; nothing was changed", shell.Plural(left, "value"), done.Former)
	case done.Kept != "":
		return r.Remark("key %s took the place of %s in %s: start the server again", done.New, done.Former, done.Kept)
	}
	return r.Remark("key %s took the place of %s: take admin.former_master_key out of the configuration", done.New, done.Former)
}
