// Package archive reads and writes the file of a backup: named parts with checksums,
// compressed, and encrypted if there is a passphrase.
//
// Without a passphrase the file is a gzipped tar file, whose last part, SHA256SUMS, is in
// the form of sha256sum(1). With one, that file is encrypted as a whole, see seal.go.
package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicegate/sluice/internal/disk"
	"github.com/sluicegate/sluice/internal/secret"
)

// sumsName is the part with the checksums of all others, the last one.
const sumsName = "SHA256SUMS"

// Sizes of parts, in bytes. A longer stream is several parts.
const (
	pieceSize = 1 << 20
	maxPart   = 64 << 20
)

// A Writer writes an archive. The file appears under its name with Commit.
type Writer struct {
	path string
	file *os.File
	seal io.WriteCloser // encrypts; nil: in clear
	zip  *gzip.Writer
	tar  *tar.Writer
	sums bytes.Buffer
	now  time.Time
}

// Create begins an archive that only its owner may read. There must be no file at path. An
// empty passphrase leaves it in clear.
func Create(path string, passphrase secret.Value) (*Writer, error) {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		if err == nil {
			err = os.ErrExist
		}
		return nil, fmt.Errorf("writing a backup to %s: %w", path, bare(err))
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return nil, fmt.Errorf("writing a backup: %w", err)
	}
	w := &Writer{path: path, file: file, now: time.Now().UTC()}
	to := io.Writer(file)
	if !passphrase.Empty() {
		if w.seal, err = newSealer(file, passphrase); err != nil {
			w.Discard()
			return nil, err
		}
		to = w.seal
	}
	w.zip = gzip.NewWriter(to)
	w.tar = tar.NewWriter(w.zip)
	return w, nil
}

// bare drops the path from an error that names it elsewhere.
func bare(err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err
	}
	return err
}

// Add adds a part.
func (w *Writer) Add(name string, data []byte) error {
	sum := sha256.Sum256(data)
	fmt.Fprintf(&w.sums, "%s  %s\n", hex.EncodeToString(sum[:]), name)
	return w.add(name, data)
}

func (w *Writer) add(name string, data []byte) error {
	err := w.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(data)), ModTime: w.now, Format: tar.FormatPAX})
	if err == nil {
		_, err = w.tar.Write(data)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", w.path, bare(err))
	}
	return nil
}

// Stream returns a writer of data of unknown length: parts name/000001, name/000002 and
// so on. It must be closed before the next part begins.
func (w *Writer) Stream(name string) io.WriteCloser { return &stream{to: w, name: name} }

type stream struct {
	to    *Writer
	name  string
	piece []byte
	count int
}

// Write implements io.Writer.
func (s *stream) Write(p []byte) (int, error) {
	written := len(p)
	for len(p) > 0 {
		n := min(pieceSize-len(s.piece), len(p))
		s.piece, p = append(s.piece, p[:n]...), p[n:]
		if len(s.piece) == pieceSize {
			if err := s.flush(); err != nil {
				return 0, err
			}
		}
	}
	return written, nil
}

func (s *stream) flush() error {
	s.count++
	err := s.to.Add(fmt.Sprintf("%s/%06d", s.name, s.count), s.piece)
	s.piece = s.piece[:0]
	return err
}

// Close implements io.Closer.
func (s *stream) Close() error {
	if len(s.piece) == 0 {
		return nil
	}
	return s.flush()
}

// Commit completes the file, makes it durable and gives it its name. It returns its size
// in bytes.
func (w *Writer) Commit() (int64, error) {
	err := w.add(sumsName, w.sums.Bytes())
	if err == nil {
		err = w.tar.Close()
	}
	if err == nil {
		err = w.zip.Close()
	}
	if err == nil && w.seal != nil {
		err = w.seal.Close()
	}
	if err == nil {
		err = w.file.Sync()
	}
	var size int64
	if info, statErr := w.file.Stat(); err == nil {
		if err = statErr; err == nil {
			size = info.Size()
		}
	}
	if err = errors.Join(err, w.file.Close()); err == nil {
		err = disk.Replace(w.file.Name(), w.path)
	}
	if err != nil {
		_ = os.Remove(w.file.Name()) // the error is what counts
		return 0, fmt.Errorf("writing %s: %w", w.path, err)
	}
	return size, nil
}

// Discard removes a file that was not committed.
func (w *Writer) Discard() {
	_ = w.file.Close()
	_ = os.Remove(w.file.Name())
}

// A Reader reads an archive from its beginning to its end, once.
type Reader struct {
	path  string
	file  *os.File
	read  *counted
	size  int64
	zip   *gzip.Reader
	tar   *tar.Reader
	sums  bytes.Buffer
	whole bool // the checksums were read, and match
}

// counted counts what was read of a file.
type counted struct {
	io.Reader
	n int64
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// Open opens an archive. passphrase is called if it is encrypted.
func Open(path string, passphrase func() (secret.Value, error)) (*Reader, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading a backup: %w", err)
	}
	r := &Reader{path: path, file: file, read: &counted{Reader: file}}
	if err := r.begin(passphrase); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return r, nil
}

// Check reads an archive to its end, and reports whether it is whole.
func Check(path string, passphrase func() (secret.Value, error)) error {
	r, err := Open(path, passphrase)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	for err == nil {
		_, _, err = r.Next()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// ErrNoArchive means that a file is not a backup.
var ErrNoArchive = errors.New("this is no backup")

func (r *Reader) begin(passphrase func() (secret.Value, error)) error {
	info, err := r.file.Stat()
	if err != nil {
		return err
	}
	r.size = info.Size()
	head := make([]byte, len(sealMagic))
	if _, err := io.ReadFull(r.read, head); err != nil {
		return ErrNoArchive
	}
	from := io.MultiReader(bytes.NewReader(head), r.read)
	if string(head) == sealMagic {
		given, err := passphrase()
		if err != nil {
			return err
		}
		if from, err = newOpener(r.read, given); err != nil {
			return err
		}
	}
	if r.zip, err = gzip.NewReader(from); err != nil {
		if errors.Is(err, gzip.ErrHeader) {
			err = ErrNoArchive
		}
		return err
	}
	r.tar = tar.NewReader(r.zip)
	return nil
}

// Next returns the next part, and io.EOF after the last one once all checksums match. The
// data is valid until the next call.
func (r *Reader) Next() (name string, data []byte, err error) {
	header, err := r.tar.Next()
	if errors.Is(err, io.EOF) && r.whole {
		if _, err := io.Copy(io.Discard, r.zip); err != nil { // checks the end of the file
			return "", nil, r.damaged(err)
		}
		return "", nil, io.EOF
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err == nil && (r.whole || header.Size > maxPart) {
		err = fmt.Errorf("part %q is not one of a backup", header.Name)
	}
	if err == nil {
		data, err = io.ReadAll(r.tar)
	}
	if err != nil {
		return "", nil, r.damaged(err)
	}
	if header.Name == sumsName {
		if !bytes.Equal(data, r.sums.Bytes()) {
			return "", nil, r.damaged(errors.New("its checksums do not match"))
		}
		r.whole = true
		return r.Next()
	}
	sum := sha256.Sum256(data)
	fmt.Fprintf(&r.sums, "%s  %s\n", hex.EncodeToString(sum[:]), header.Name)
	return header.Name, data, nil
}

func (r *Reader) damaged(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it ends before its end")
	}
	return fmt.Errorf("%s is damaged or incomplete: %w", r.path, err)
}

// Progress returns how many bytes of the file were read, and its size.
func (r *Reader) Progress() (done, total int64) { return r.read.n, r.size }

// Close closes the file.
func (r *Reader) Close() error { return r.file.Close() }
