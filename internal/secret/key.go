package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// ErrOtherKey means that a value was sealed with a different key.
var ErrOtherKey = errors.New("sealed with another key")

// ErrDamaged means that a sealed value was changed, truncated, or copied from
// elsewhere.
var ErrDamaged = errors.New("sealed value is damaged or belongs elsewhere")

// Layout of a sealed value: format, key id, salt, then nonce, ciphertext and tag.
const (
	keySize    = 32
	formatOne  = 1
	idSize     = 4
	saltSize   = 16
	headerSize = 1 + idSize + saltSize
	overhead   = headerSize + 12 + 16
)

// A Key seals values for storage. It prints as ***. Make one with NewKey,
// ParseKey, KeepKey or DeriveKey; the zero Key must not be used, and sealing or
// opening with it is an error.
type Key struct {
	// 32 bytes, behind a pointer for the same reason as Value's content. A pointer to
	// an array would not do: fmt dereferences it if the verb does not fit.
	content *string
	former  *string // content of a former key, whose sealed values can be opened too; nil: none
	_       [0]func()
}

// keyOf returns the key of the first 32 bytes of raw.
func keyOf(raw []byte) Key {
	content := string(raw[:keySize])
	return Key{content: &content}
}

func (k Key) bytes() []byte { return []byte(*k.content) }

// NewKey returns a random key.
func NewKey() Key {
	raw := make([]byte, keySize)
	_, _ = rand.Read(raw) // documented never to fail
	return keyOf(raw)
}

// ParseKey reads a key from the 64 hexadecimal digits that Text returns.
func ParseKey(text Value) (Key, error) {
	raw, err := hex.DecodeString(text.Reveal())
	if err != nil || len(raw) != keySize {
		return Key{}, fmt.Errorf("key: want 64 hexadecimal digits (32 bytes, as openssl rand -hex 32 prints them), got %d characters", len(text.Reveal()))
	}
	return keyOf(raw), nil
}

// KeepKey returns the key in the file at path. If the file is missing, it creates it
// with a random key and mode 0600, and created is true. A file that group or others
// may access is refused.
func KeepKey(path string) (k Key, created bool, err error) {
	text, created, err := KeepFile(path, func() string { return NewKey().Text().Reveal() })
	if err != nil {
		return Key{}, false, err
	}
	if k, err = ParseKey(text); err != nil {
		return Key{}, false, fmt.Errorf("%s: %w", path, err)
	}
	return k, created, nil
}

// DeriveKey derives a key for one purpose from a secret of high entropy, such as a
// random token. Keys for different purposes are unrelated. A password is not such a
// secret.
func DeriveKey(from Value, purpose string) (Key, error) {
	if from.Empty() {
		return Key{}, errors.New("deriving a key: the secret it comes from is empty")
	}
	raw, err := hkdf.Key(sha256.New, []byte(from.Reveal()), nil, "sluice key: "+purpose, keySize)
	if err != nil {
		return Key{}, fmt.Errorf("deriving a key: %w", err)
	}
	return keyOf(raw), nil
}

// DeriveKeyAfter is DeriveKey for a secret that took the place of former, which may be
// empty: the key also opens what the key of former sealed.
func DeriveKeyAfter(from, former Value, purpose string) (Key, error) {
	key, err := DeriveKey(from, purpose)
	if err != nil || former.Empty() {
		return key, err
	}
	before, err := DeriveKey(former, purpose)
	return key.After(before), err
}

// After returns k as a key that also opens what former, the key before it, sealed. It
// seals as k does, and has its ID.
func (k Key) After(former Key) Key {
	k.former = former.content
	return k
}

// Text returns the key as 64 hexadecimal digits, for ParseKey.
func (k Key) Text() Value {
	if k.content == nil {
		return Value{}
	}
	return New(hex.EncodeToString(k.bytes()))
}

// ID returns 8 hexadecimal digits that identify the key and do not reveal it. A sealed
// value carries the ID of its key. The zero Key has the ID "".
func (k Key) ID() string {
	id, err := k.id()
	if err != nil {
		return ""
	}
	return hex.EncodeToString(id)
}

func (k Key) id() ([]byte, error) {
	if k.content == nil {
		return nil, errors.New("no key is set")
	}
	return hkdf.Key(sha256.New, k.bytes(), nil, "sluice key id", idSize)
}

// Seal encrypts and authenticates plain, and adds 49 bytes. Open needs the same
// associated data, which is not stored. It identifies where the value belongs (table,
// row, column), so that a value that is copied elsewhere does not open.
func (k Key) Seal(plain, associated []byte) ([]byte, error) {
	id, err := k.id()
	if err != nil {
		return nil, fmt.Errorf("sealing: %w", err)
	}
	sealed := make([]byte, headerSize, len(plain)+overhead)
	sealed[0] = formatOne
	copy(sealed[1:], id)
	_, _ = rand.Read(sealed[1+idSize : headerSize])
	box, err := k.box(sealed[1+idSize : headerSize])
	if err != nil {
		return nil, fmt.Errorf("sealing: %w", err)
	}
	return box.Seal(sealed, nil, plain, bind(sealed[:headerSize], associated)), nil
}

// Open returns the text that was passed to Seal. It fails with ErrOtherKey or
// ErrDamaged.
func (k Key) Open(sealed, associated []byte) ([]byte, error) {
	id, err := k.id()
	if err != nil {
		return nil, fmt.Errorf("opening a sealed value: %w", err)
	}
	if len(sealed) < overhead || sealed[0] != formatOne {
		return nil, ErrDamaged
	}
	if sealedWith := sealed[1 : 1+idSize]; string(sealedWith) != string(id) {
		if k.former != nil {
			return Key{content: k.former}.Open(sealed, associated)
		}
		return nil, fmt.Errorf("%w: with %x, and this is %x", ErrOtherKey, sealedWith, id)
	}
	box, err := k.box(sealed[1+idSize : headerSize])
	if err != nil {
		return nil, fmt.Errorf("opening a sealed value: %w", err)
	}
	plain, err := box.Open(nil, nil, sealed[headerSize:], bind(sealed[:headerSize], associated))
	if err != nil {
		return nil, ErrDamaged
	}
	return plain, nil
}

// box derives the cipher of one sealed value from its salt. With one cipher for
// all values, random 96-bit nonces would bound how many a key may seal (2^32).
func (k Key) box(salt []byte) (cipher.AEAD, error) {
	raw, err := hkdf.Key(sha256.New, k.bytes(), salt, "sluice seal", keySize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// bind joins header and associated data: as the header's length is fixed, no two pairs
// give the same bytes.
func bind(header, associated []byte) []byte {
	joined := make([]byte, 0, len(header)+len(associated))
	return append(append(joined, header...), associated...)
}

// String returns ***.
func (k Key) String() string { return mask }

// GoString returns ***, for the verb %#v.
func (k Key) GoString() string { return mask }

// Format writes *** for every verb and flag.
func (k Key) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, mask) }

// MarshalText returns ***.
func (k Key) MarshalText() ([]byte, error) { return []byte(mask), nil }

// LogValue returns ***, for log/slog.
func (k Key) LogValue() slog.Value { return slog.StringValue(mask) }
