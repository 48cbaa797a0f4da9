package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/spf13/cobra"
)

// A Backup has the options of a backup or of a restore.
type Backup struct {
	File       string
	Passphrase func() (string, error) // asked for when it is needed; nil: a backup is not encrypted
	WithoutKey bool                   // a backup has no files of data_dir, and no master key
	Progress   func(done, total int64)
}

// BackedUp is the result of a backup or of a restore.
type BackedUp struct {
	Created time.Time
	Schema  int64
	Tables  int
	Rows    int64
	Bytes   int64    // of the file; 0 after a restore
	Files   []string // of data_dir
	LeftOut []string // tables of the database that are not Sluice's

	NeedsKey string // id of the master key that a restored database needs and the backup lacks
}

// BackupOrRestore copies the configured database to a file, or the other way.
type BackupOrRestore func(ctx context.Context, cfg *config.Config, how Backup) (*BackedUp, error)

// minPassphrase is the least length of a passphrase, in bytes.
const minPassphrase = 12

// wantedBackup is what the flags of both commands set.
type wantedBackup struct {
	encrypt, withoutKey bool
	passphraseFile      string
}

func backupSettings() []shell.Setting {
	return []shell.Setting{databaseURL, {Flag: "data-dir", Key: "data_dir", Usage: "`DIR` of the admin, with generated keys and a private database"}}
}

func (s *session) backupCommand() *cobra.Command {
	var w wantedBackup
	settings := backupSettings()
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Save the database, the master key and generated secrets in one file",
		Long: `Copies everything that an admin keeps, as of one moment, into a new file: the
database with its sealed secrets, the master key that opens them, and the secrets
that a server generated in data_dir. Servers may run meanwhile.

The file opens everything: encrypt it, or keep it as you keep the master key. Used
quotas are in the key store or in data_dir/counters, and not in the file.

Run it where the admin runs, with the same configuration.`,
		Example: "  sluice backup --encrypt /backup/sluice-$(date +%F)\n  sluice backup --passphrase-file /etc/sluice/passphrase /backup/sluice-$(date +%F)",
		Args:    shell.OneArg("FILE to write"),
		RunE:    func(cmd *cobra.Command, args []string) error { return s.backup(cmd, settings, args[0], &w) },
	}
	shell.AddSettings(cmd, settings)
	f := cmd.Flags()
	f.BoolVar(&w.encrypt, "encrypt", false, "encrypt the file with a passphrase, which is asked for or read from standard input")
	f.StringVar(&w.passphraseFile, "passphrase-file", "", "`FILE` with a passphrase to encrypt with")
	f.BoolVar(&w.withoutKey, "without-keys", false, "leave out the master key and the secrets of data_dir, which are then to be kept elsewhere")
	shell.Must(cmd.MarkFlagFilename("passphrase-file"))
	return cmd
}

func (s *session) restoreCommand() *cobra.Command {
	var w wantedBackup
	settings := backupSettings()
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore a backup into an empty database",
		Long: `Restores what backup saved into an empty database: the configured one, or else a new
private one in data_dir. The master key and the generated secrets are written to
data_dir, unless they are configured.

All of it is one transaction: after an interruption the database is as empty as before.
Start the admin afterwards; it brings an older schema up to date, and brings the keys in
the key store in line with the database.`,
		Example: "  sluice restore /backup/sluice-2026-11-23 --database-url postgres://db.internal/sluice\n  sluice restore /backup/sluice-2026-11-23 --data-dir /var/lib/sluice",
		Args:    shell.OneArg("FILE to read"),
		RunE:    func(cmd *cobra.Command, args []string) error { return s.restore(cmd, settings, args[0], &w) },
	}
	shell.AddSettings(cmd, settings)
	cmd.Flags().StringVar(&w.passphraseFile, "passphrase-file", "", "`FILE` with the passphrase of an encrypted backup; otherwise it is asked for or read from standard input")
	shell.Must(cmd.MarkFlagFilename("passphrase-file"))
	return cmd
}

// passphrase returns what reads the passphrase.
func (s *session) passphrase(ctx context.Context, w *wantedBackup) func() (string, error) {
	return func() (string, error) {
		if w.passphraseFile == "" {
			return s.Secret(ctx, "passphrase of the backup")
		}
		text, err := s.ReadInput(w.passphraseFile)
		return strings.TrimRight(string(text), "\r\n"), err
	}
}

// newPassphrase is passphrase for a new file: one that is typed is typed twice, and a
// short one is refused.
func (s *session) newPassphrase(ctx context.Context, w *wantedBackup) func() (string, error) {
	return func() (string, error) {
		given, err := s.passphrase(ctx, w)()
		if err != nil {
			return given, err
		}
		if len(given) < minPassphrase {
			return given, shell.Exit(shell.ExitUsage, fmt.Sprintf("the passphrase is too short: want at least %d characters", minPassphrase))
		}
		if w.passphraseFile == "" && shell.IsTerminal(s.Stdin) {
			again, err := s.Secret(ctx, "the same again")
			if err == nil && again != given {
				err = shell.Exit(shell.ExitUsage, "the two passphrases differ")
			}
			return given, err
		}
		return given, nil
	}
}

// progressOf returns what shows progress, and what ends it.
func (s *session) progressOf(what string) (set func(done, total int64), end func()) {
	if s.Quiet {
		return nil, func() {}
	}
	bar := shell.NewBar(s.Stderr, shell.IsTerminal(s.Stderr), what, time.Now)
	return func(done, total int64) { bar.Set(int(done), int(total)) }, bar.End
}

func (s *session) backup(cmd *cobra.Command, settings []shell.Setting, file string, w *wantedBackup) error {
	if _, err := os.Lstat(file); err == nil {
		return shell.Exit(shell.ExitUsage, file+" exists: a backup does not replace a file")
	}
	cfg, _, err := s.Load(cmd, config.AnyRole, settings...)
	if err != nil {
		return err
	}
	how := Backup{File: file, WithoutKey: w.withoutKey}
	if w.encrypt || w.passphraseFile != "" {
		how.Passphrase = s.newPassphrase(cmd.Context(), w)
	}
	progress, end := s.progressOf("backup")
	how.Progress = progress
	done, err := s.process.Commands.CreateBackup(cmd.Context(), cfg, how)
	end()
	if err != nil {
		return err
	}
	if err := s.printBackup(file, done); err != nil || s.Output != "table" {
		return err
	}
	if len(done.LeftOut) > 0 {
		if err := s.Remark("left out, because they are not Sluice's: tables %s", strings.Join(done.LeftOut, ", ")); err != nil {
			return err
		}
	}
	switch {
	case how.Passphrase != nil:
		return s.Remark("the file is encrypted: without its passphrase nobody can restore it")
	case w.withoutKey:
		return s.Remark("the file has no master key: keep that elsewhere, because the secrets in the file do not open without it")
	}
	return s.Remark("the file holds the master key and is not encrypted: keep it as a secret")
}

func (s *session) restore(cmd *cobra.Command, settings []shell.Setting, file string, w *wantedBackup) error {
	cfg, _, err := s.Load(cmd, config.AnyRole, settings...)
	if err != nil {
		return err
	}
	how := Backup{File: file, Passphrase: s.passphrase(cmd.Context(), w)}
	progress, end := s.progressOf("restore")
	how.Progress = progress
	done, err := s.process.Commands.Restore(cmd.Context(), cfg, how)
	end()
	if err != nil {
		return err
	}
	if err := s.printBackup(file, done); err != nil || s.Output != "table" {
		return err
	}
	if done.NeedsKey != "" {
		return s.Remark("the backup has no master key: configure key %s as admin.master_key before you start the admin", done.NeedsKey)
	}
	return s.Remark("start the admin now")
}

// printBackup prints what a file has.
func (s *session) printBackup(file string, done *BackedUp) error {
	return s.Print(shell.Rows{
		Columns: []string{"file", "created", "schema", "tables", "rows", "bytes", "files"},
		Cells:   [][]any{{file, done.Created.Format(time.RFC3339), done.Schema, done.Tables, done.Rows, done.Bytes, strings.Join(done.Files, " ")}},
	})
}
