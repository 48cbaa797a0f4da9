// Package secrets is the commands on the key that seals secrets in the database.
package secrets

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicegate/sluice/internal/cli/progress"
	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/config"
)

// A Rotation says how the master key is changed.
type Rotation struct {
	DryRun   bool
	Progress func(done, total int) // told of values on their way
}

// Rotated is what a change of the master key came to.
type Rotated struct {
	Former, New string // ids of the keys, which reveal nothing of them
	Kept        string // file that holds the new key; "" when it is configured
	Tables      []Count
}

// A Count is how many values of a table are sealed with which key.
type Count struct {
	Table       string
	New, Former int
}

// Rotate changes the master key of the database that a configuration names.
type Rotate func(ctx context.Context, cfg *config.Config, how Rotation) (*Rotated, error)

// room is the commands of this package.
type room struct {
	*shell.Shell
	rotate      Rotate
	former, new string // files
	dryRun      bool
}

// Command returns the command that groups those on secrets.
func Command(s *shell.Shell, rotate Rotate, databaseURL shell.Setting) *cobra.Command {
	r := &room{Shell: s, rotate: rotate}
	settings := []shell.Setting{
		databaseURL, {Flag: "data-dir", Key: "data_dir", Usage: "`DIR` of a private database, and of keys that nobody configured"},
	}
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Seal all secrets in the database with a new master key",
		Long: `Seals anew what the database holds under the former master key: private keys of
certificates, secrets of webhooks, messages that hold a credential, and the like.

Where admin.master_key is configured: set it to the new key and
admin.former_master_key to the one before, on every admin, and restart them. They
read both from then on. Then run this, and take admin.former_master_key out again.

Where it is not, the key is data_dir/master.key: stop the server, run this, which
makes a new key in its place, and start the server again.

It works on the database itself, page by page. When it is ended in the middle,
every secret is still read, and running it again goes on. Values that open with
neither key are listed, and then nothing is changed.`,
		Example: "  sluice secrets rotate --database-url postgres://db.internal/sluice --former-key-file old --new-key-file new\n  sluice secrets rotate --dry-run",
		Args:    shell.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return r.run(cmd, settings) },
	}
	shell.AddSettings(cmd, settings)
	f := cmd.Flags()
	f.StringVar(&r.former, "former-key-file", "", "`FILE` with the key before (admin.former_master_key)")
	f.StringVar(&r.new, "new-key-file", "", "`FILE` with the new key (admin.master_key)")
	f.BoolVar(&r.dryRun, "dry-run", false, "look whether every secret can be read, and change nothing")
	shell.Must(cmd.MarkFlagFilename("former-key-file"))
	shell.Must(cmd.MarkFlagFilename("new-key-file"))
	return shell.Group("secrets", "Change the key that secrets in the database are sealed with", cmd)
}

func (r *room) run(cmd *cobra.Command, settings []shell.Setting) error {
	for variable, file := range map[string]string{"SLUICE_ADMIN_FORMER_MASTER_KEY_FILE": r.former, "SLUICE_ADMIN_MASTER_KEY_FILE": r.new} {
		if file != "" {
			r.Env = append(r.Env, variable+"="+file)
		}
	}
	cfg, _, err := r.Load(cmd, config.AnyRole, settings...)
	if err != nil {
		return err
	}
	bar := progress.New(r.Stderr, shell.IsTerminal(r.Stderr), "sealed values", time.Now)
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

func (r *room) tell(done *Rotated) error {
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
