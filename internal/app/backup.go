package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicegate/sluice/admin/rotatemaster"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/archive"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/disk"
	"github.com/sluicegate/sluice/internal/embedded"
	"github.com/sluicegate/sluice/internal/secret"
)

// Parts of a backup before the database: what it is, and files of data_dir.
const (
	headPart  = "backup.json"
	filesPart = "files/"
)

// backupFormat is the version of the parts. A program refuses later ones.
const backupFormat = 1

// savedFiles are the files of data_dir that a backup holds beside the master key.
var savedFiles = []string{"admin.key", "gateway.token", "gateway.secret"}

// backupHead is what a backup says of itself.
type backupHead struct {
	Format    int       `json:"format"`
	Program   string    `json:"program"`
	Created   time.Time `json:"created"`
	MasterKey string    `json:"master_key"` // id, which does not reveal it
}

// A Backup has the options of a backup or of a restore.
type Backup struct {
	File       string
	Passphrase func() (string, error)  // asked for when it is needed; nil: a backup is not encrypted
	WithoutKey bool                    // a backup has no files of data_dir, and no master key
	Progress   func(done, total int64) // may be nil
}

// secret asks for the passphrase.
func (b *Backup) secret() (secret.Value, error) {
	text, err := b.Passphrase()
	return secret.New(text), err
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

func (b *BackedUp) count(d *store.Dumped) {
	b.Schema, b.Tables, b.LeftOut = d.Schema, len(d.Rows), d.LeftOut
	for _, n := range d.Rows {
		b.Rows += n
	}
}

// CreateBackup copies the database, the master key and generated secrets into a new file.
// Servers may run meanwhile.
func CreateBackup(ctx context.Context, cfg *config.Config, how Backup) (*BackedUp, error) {
	url, end, err := databaseToRead(ctx, cfg)
	if err != nil {
		return nil, err
	}
	done, err := createBackup(ctx, cfg, url, how)
	return done, errors.Join(err, end())
}

// databaseToRead returns the address of the database, which may be the private one of a
// server that runs.
func databaseToRead(ctx context.Context, cfg *config.Config) (url secret.Value, end func() error, err error) {
	if cfg.Database.URL.Empty() {
		base := postgresDir(cfg)
		if has, err := embedded.HasData(base); err != nil || !has {
			if err == nil {
				err = fmt.Errorf("database.url is empty, and there is no private database in %s: say which database to back up", base)
			}
			return secret.Value{}, nil, err
		}
		dsn, err := embedded.Attach(ctx, embedded.Options{BaseDir: base})
		if err != nil {
			return secret.Value{}, nil, err
		}
		if dsn != "" {
			return secret.New(dsn), func() error { return nil }, nil
		}
	}
	return databaseFor(ctx, cfg)
}

func createBackup(ctx context.Context, cfg *config.Config, url secret.Value, how Backup) (*BackedUp, error) {
	head := backupHead{Format: backupFormat, Program: Version(), Created: time.Now().UTC().Truncate(time.Second)}
	files, err := filesToSave(cfg)
	if err != nil {
		return nil, err
	}
	if head.MasterKey, err = checkSavedKey(ctx, url, files); err != nil {
		return nil, err
	}
	var passphrase secret.Value
	if how.Passphrase != nil {
		if passphrase, err = how.secret(); err != nil {
			return nil, err
		}
	}
	w, err := archive.Create(how.File, passphrase)
	if err != nil {
		return nil, err
	}
	done := &BackedUp{Created: head.Created}
	if how.WithoutKey {
		files = nil
	}
	if err := addHead(w, &head, files, done); err != nil {
		w.Discard()
		return nil, err
	}
	dumped, err := store.Dump(ctx, url.Reveal(), w, how.Progress)
	if err != nil {
		w.Discard()
		return nil, err
	}
	done.count(dumped)
	done.Bytes, err = w.Commit()
	return done, err
}

func addHead(w *archive.Writer, head *backupHead, files map[string]secret.Value, done *BackedUp) error {
	text, err := json.MarshalIndent(head, "", "  ")
	if err == nil {
		err = w.Add(headPart, text)
	}
	for name, value := range files {
		if err == nil {
			err = w.Add(filesPart+name, []byte(value.Reveal()+"\n"))
		}
		done.Files = append(done.Files, name)
	}
	slices.Sort(done.Files)
	return err
}

// filesToSave returns the generated secrets by the names of their files in data_dir. A
// configured master key is among them as if it had been generated.
func filesToSave(cfg *config.Config) (map[string]secret.Value, error) {
	files := map[string]secret.Value{}
	names := slices.Clone(savedFiles)
	switch a := cfg.Admin; {
	case a.MasterKey.Empty():
		names = append(names, masterKeyFile, nextKeyFile)
	case a.FormerMasterKey.Empty():
		files[masterKeyFile] = a.MasterKey
	default: // a rotation may be under way
		files[masterKeyFile], files[nextKeyFile] = a.FormerMasterKey, a.MasterKey
	}
	for _, name := range names {
		value, err := secret.ReadFile(filepath.Join(cfg.DataDir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[name] = value
	}
	if files[masterKeyFile].Empty() {
		return nil, fmt.Errorf("admin.master_key: no key is configured, nor kept in %s: without it the secrets in a backup cannot be opened; run this command with the configuration and data_dir of the admin", cfg.DataDir)
	}
	return files, nil
}

// checkSavedKey refuses to save a master key that is not that of the database. It returns
// the key's id.
func checkSavedKey(ctx context.Context, url secret.Value, files map[string]secret.Value) (id string, err error) {
	key, err := secret.ParseKey(files[masterKeyFile])
	if err != nil {
		return "", fmt.Errorf("admin.master_key: %w", err)
	}
	if next := files[nextKeyFile]; !next.Empty() {
		after, err := secret.ParseKey(next)
		if err != nil {
			return "", fmt.Errorf("%s: %w", nextKeyFile, err)
		}
		key = key.After(after)
	}
	st, err := store.Open(ctx, store.Options{URL: url.Reveal(), MaxConns: 1})
	if err != nil {
		return "", err
	}
	defer st.Close()
	if err := rotatemaster.Verify(ctx, st, key); err != nil {
		return "", fmt.Errorf("admin.master_key: %w", err)
	}
	return key.ID(), nil
}

// Restore restores a backup into an empty database and data_dir. Nothing is changed unless
// all of the backup is undamaged.
func Restore(ctx context.Context, cfg *config.Config, how Backup) (*BackedUp, error) {
	passphrase := sync.OnceValues(how.secret)
	// Before anything else: the database would report damage as an error of its own.
	if err := archive.Check(how.File, passphrase); err != nil {
		return nil, err
	}
	a, err := archive.Open(how.File, passphrase)
	if err != nil {
		return nil, err
	}
	defer func() { _ = a.Close() }()
	r := &restore{cfg: cfg, parts: a, progress: how.Progress, files: map[string][]byte{}}
	if err := r.readHead(); err != nil {
		return nil, fmt.Errorf("%s: %w", how.File, err)
	}
	if err := r.checkFiles(); err != nil {
		return nil, err
	}
	mode := os.FileMode(0o700)
	if cfg.Database.URL.Empty() {
		mode = 0o711 // the database's user passes through
	}
	if err := os.MkdirAll(cfg.DataDir, mode); err != nil {
		return nil, fmt.Errorf("data_dir: %w", err)
	}
	url, end, err := databaseFor(ctx, cfg)
	if err != nil {
		return nil, err
	}
	loaded, err := store.Load(ctx, url.Reveal(), r, r.writeFiles)
	if err = errors.Join(err, end()); err != nil {
		return nil, err
	}
	done := &BackedUp{Created: r.head.Created, Files: r.written}
	if !r.hasKey {
		done.NeedsKey = r.head.MasterKey
	}
	done.count(loaded)
	return done, nil
}

// restore reads a backup.
type restore struct {
	cfg      *config.Config
	parts    *archive.Reader
	progress func(done, total int64)
	head     backupHead
	files    map[string][]byte // of data_dir, by name
	written  []string          // files that were not there before

	hasKey bool // the master key is in the backup, or is configured

	name string // of the first part of the database, which was read already; "": none
	data []byte
}

// readHead reads up to the first part of the database.
func (r *restore) readHead() error {
	for first := true; ; first = false {
		name, data, err := r.parts.Next()
		if err != nil {
			return err
		}
		file, isFile := strings.CutPrefix(name, filesPart)
		switch {
		case first && name == headPart:
			if err := json.Unmarshal(data, &r.head); err != nil || r.head.Format < 1 {
				return archive.ErrNoArchive
			}
			if r.head.Format > backupFormat {
				return fmt.Errorf("it has format %d, and this program knows formats up to %d: use a newer program", r.head.Format, backupFormat)
			}
		case first:
			return archive.ErrNoArchive
		case isFile && (slices.Contains(savedFiles, file) || file == masterKeyFile || file == nextKeyFile):
			r.files[file] = bytes.Clone(data)
		case isFile:
			return fmt.Errorf("file %q is not one of a backup", file)
		default:
			r.name, r.data = name, bytes.Clone(data)
			return nil
		}
	}
}

// checkFiles refuses to replace files of data_dir, and a master key that would not open
// what is restored.
func (r *restore) checkFiles() error {
	_, r.hasKey = r.files[masterKeyFile]
	if !r.cfg.Admin.MasterKey.Empty() {
		key, err := secret.ParseKey(r.cfg.Admin.MasterKey)
		if err != nil {
			return fmt.Errorf("admin.master_key: %w", err)
		}
		if _, next := r.files[nextKeyFile]; key.ID() != r.head.MasterKey && !next {
			return fmt.Errorf("admin.master_key is key %s, and the backup has the secrets of key %s: configure that one, or none, so that it is restored to data_dir", key.ID(), r.head.MasterKey)
		}
		delete(r.files, masterKeyFile)
		delete(r.files, nextKeyFile)
		r.hasKey = true
	}
	for name, data := range r.files {
		path := filepath.Join(r.cfg.DataDir, name)
		found, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			r.written = append(r.written, name)
		case err != nil:
			return fmt.Errorf("data_dir: %w", err)
		case !bytes.Equal(bytes.TrimSpace(found), bytes.TrimSpace(data)):
			return fmt.Errorf("%s exists and differs from the one in the backup: move it away, or restore to another data_dir", path)
		}
	}
	slices.Sort(r.written)
	return nil
}

// Next implements store.DumpReader.
func (r *restore) Next() (name string, data []byte, err error) {
	if r.progress != nil {
		r.progress(r.parts.Progress())
	}
	if name, data = r.name, r.data; name != "" {
		r.name, r.data = "", nil
		return name, data, nil
	}
	return r.parts.Next()
}

// writeFiles writes the files, which are durable before the database is. If the restore
// fails after it they stay, for the next attempt.
func (r *restore) writeFiles() error {
	for _, name := range r.written {
		if err := disk.WriteFile(filepath.Join(r.cfg.DataDir, name), r.files[name], 0o600); err != nil {
			return fmt.Errorf("data_dir: %w", err)
		}
	}
	return nil
}
