package archive

import (
	"bufio"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"golang.org/x/crypto/argon2"

	"github.com/sluicegate/sluice/internal/secret"
)

// An encrypted file is a head and then pieces of sealedPiece bytes, the last one shorter,
// each sealed with AES-256-GCM. The key is derived from the passphrase and a salt of the
// file by Argon2id, so that no key seals two files. The nonce of a piece is its number and
// whether it is the last one: pieces cannot be exchanged, nor left out at the end. The head
// is authenticated with every piece.
const (
	sealMagic   = "SLUICE BACKUP 1\n"
	saltSize    = 16
	headSize    = len(sealMagic) + saltSize + 4 + 4
	sealedPiece = 64 << 10
	tagSize     = 16
)

// Costs of a guess at a passphrase: 64 MiB and three passes, about 0.2 s. What a file asks
// for is bounded.
const (
	keyMemory, keyPasses       = 64 << 10, 3 // KiB
	maxKeyMemory, maxKeyPasses = 1 << 20, 16
)

// ErrPassphrase means that a file does not open with a passphrase.
var ErrPassphrase = errors.New("the passphrase is wrong, or the file is damaged")

// pieceCipher seals or opens the pieces of one file.
type pieceCipher struct {
	box   cipher.AEAD
	head  []byte
	count uint64
}

func newPieceCipher(head []byte, passphrase secret.Value) (*pieceCipher, error) {
	salt := head[len(sealMagic) : len(sealMagic)+saltSize]
	memory := binary.BigEndian.Uint32(head[headSize-8:])
	passes := binary.BigEndian.Uint32(head[headSize-4:])
	if memory > maxKeyMemory || passes > maxKeyPasses || passes == 0 {
		return nil, ErrNoArchive
	}
	block, err := aes.NewCipher(argon2.IDKey([]byte(passphrase.Reveal()), salt, passes, memory, 1, 32))
	if err != nil {
		return nil, err
	}
	box, err := cipher.NewGCM(block)
	return &pieceCipher{box: box, head: head}, err
}

// nonce returns that of the next piece.
func (c *pieceCipher) nonce(last bool) []byte {
	nonce := make([]byte, c.box.NonceSize())
	binary.BigEndian.PutUint64(nonce[:8], c.count)
	if last {
		nonce[len(nonce)-1] = 1
	}
	c.count++
	return nonce
}

// sealer encrypts what is written to it.
type sealer struct {
	to     io.Writer
	cipher *pieceCipher
	piece  []byte
}

func newSealer(to io.Writer, passphrase secret.Value) (*sealer, error) {
	head := make([]byte, headSize)
	copy(head, sealMagic)
	_, _ = rand.Read(head[len(sealMagic) : len(sealMagic)+saltSize]) // documented never to fail
	binary.BigEndian.PutUint32(head[headSize-8:], keyMemory)
	binary.BigEndian.PutUint32(head[headSize-4:], keyPasses)
	c, err := newPieceCipher(head, passphrase)
	if err == nil {
		_, err = to.Write(head)
	}
	if err != nil {
		return nil, fmt.Errorf("encrypting a backup: %w", err)
	}
	return &sealer{to: to, cipher: c}, nil
}

// Write implements io.Writer.
func (s *sealer) Write(p []byte) (int, error) {
	written := len(p)
	for len(p) > 0 {
		if len(s.piece) == sealedPiece { // there is more, so this is not the last one
			if err := s.flush(false); err != nil {
				return 0, err
			}
		}
		n := min(sealedPiece-len(s.piece), len(p))
		s.piece, p = append(s.piece, p[:n]...), p[n:]
	}
	return written, nil
}

func (s *sealer) flush(last bool) error {
	_, err := s.to.Write(s.cipher.box.Seal(nil, s.cipher.nonce(last), s.piece, s.cipher.head))
	s.piece = s.piece[:0]
	return err
}

// Close implements io.Closer. It writes the last piece.
func (s *sealer) Close() error { return s.flush(true) }

// opener decrypts what a sealer wrote.
type opener struct {
	from   *bufio.Reader
	cipher *pieceCipher
	rest   []byte // decrypted, and not read yet
	ended  bool
}

// newOpener reads from after the magic.
func newOpener(from io.Reader, passphrase secret.Value) (*opener, error) {
	head := make([]byte, headSize)
	copy(head, sealMagic)
	if _, err := io.ReadFull(from, head[len(sealMagic):]); err != nil {
		return nil, ErrNoArchive
	}
	c, err := newPieceCipher(head, passphrase)
	if err != nil {
		return nil, err
	}
	o := &opener{from: bufio.NewReaderSize(from, 2*sealedPiece), cipher: c}
	return o, o.next() // a wrong passphrase is reported at once
}

// Read implements io.Reader.
func (o *opener) Read(p []byte) (int, error) {
	for len(o.rest) == 0 {
		if o.ended {
			return 0, io.EOF
		}
		if err := o.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, o.rest)
	o.rest = o.rest[n:]
	return n, nil
}

// next opens the next piece.
func (o *opener) next() error {
	sealed := make([]byte, sealedPiece+tagSize)
	n, err := io.ReadFull(o.from, sealed)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // the last piece is missing
		}
		return err
	}
	_, err = o.from.Peek(1)
	o.ended = err != nil
	nonce := o.cipher.nonce(o.ended)
	if o.rest, err = o.cipher.box.Open(sealed[:0], nonce, sealed[:n], o.cipher.head); err != nil {
		return ErrPassphrase
	}
	return nil
}
