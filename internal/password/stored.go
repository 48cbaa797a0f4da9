package password

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"
)

// Kind is the algorithm of a stored password, by its name in sessions.
type Kind string

// The kinds.
const (
	Argon2id Kind = "argon2id" // Argon2id is the algorithm of passwords that are hashed here.
	Bcrypt   Kind = "bcrypt"   // Bcrypt is accepted for imported passwords.
)

// ParseKind returns the kind of that name, in any case. The error lists the kinds.
func ParseKind(name string) (Kind, error) {
	for _, k := range []Kind{Argon2id, Bcrypt} {
		if strings.EqualFold(name, string(k)) {
			return k, nil
		}
	}
	return "", fmt.Errorf("must be %s or %s for a password that is hashed already, or left out for one that is to be hashed", Bcrypt, Argon2id)
}

// Bounds of imported hashes: a client with a wrong password costs the gateway as much.
const (
	maxCost   = 14        // of bcrypt, about a second
	maxMemory = 128 << 10 // KiB
	maxPasses = 10
	maxLanes  = 8
)

// CheckStored returns what is wrong with a stored password of a kind, or nil. The
// error never quotes it.
func CheckStored(k Kind, stored string) error {
	if k == Argon2id {
		_, err := parseArgon(stored)
		return err
	}
	cost, err := bcrypt.Cost([]byte(stored))
	switch {
	case err != nil || !isBcrypt(stored):
		return errors.New("is no bcrypt hash, which begins with $2a$, $2b$ or $2y$; leave hash_type out to have the password hashed")
	case cost > maxCost:
		return fmt.Errorf("is a bcrypt hash of cost %d; at most %d is checked on requests", cost, maxCost)
	}
	return nil
}

// bcryptSize is the length of every bcrypt hash.
const bcryptSize = 60

func isBcrypt(stored string) bool {
	return strings.HasPrefix(stored, "$2") && len(stored) == bcryptSize
}

// argon is a stored password of kind Argon2id.
type argon struct {
	memory uint32 // KiB
	passes uint32
	lanes  uint8
	salt   []byte
	sum    []byte
}

// String returns the stored form, which other software reads too:
// $argon2id$v=19$m=19456,t=2,p=1$salt$sum.
func (a *argon) String() string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, a.memory, a.passes, a.lanes,
		base64.RawStdEncoding.EncodeToString(a.salt), base64.RawStdEncoding.EncodeToString(a.sum))
}

var errNotArgon = errors.New("is no argon2id hash, such as $argon2id$v=19$m=19456,t=2,p=1$salt$sum; leave hash_type out to have the password hashed")

// parseArgon reads the form of String, also as written by other software.
func parseArgon(stored string) (*argon, error) {
	parts := strings.Split(stored, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != "v="+strconv.Itoa(argon2.Version) {
		return nil, errNotArgon
	}
	a := new(argon)
	if err := a.parseCosts(parts[3]); err != nil {
		return nil, err
	}
	var errSalt, errSum error
	a.salt, errSalt = base64.RawStdEncoding.DecodeString(parts[4])
	a.sum, errSum = base64.RawStdEncoding.DecodeString(parts[5])
	const least, most = 8, 128
	if errSalt != nil || errSum != nil || len(a.salt) < least || len(a.salt) > most || len(a.sum) < least || len(a.sum) > most {
		return nil, errNotArgon
	}
	return a, nil
}

// parseCosts reads m=19456,t=2,p=1.
func (a *argon) parseCosts(text string) error {
	costs := strings.Split(text, ",")
	if len(costs) != 3 {
		return errNotArgon
	}
	var numbers [3]uint64
	for i, name := range [...]string{"m=", "t=", "p="} {
		digits, ok := strings.CutPrefix(costs[i], name)
		n, err := strconv.ParseUint(digits, 10, 32)
		if !ok || err != nil || n == 0 {
			return errNotArgon
		}
		numbers[i] = n
	}
	if numbers[0] > maxMemory || numbers[1] > maxPasses || numbers[2] > maxLanes {
		return fmt.Errorf("is an argon2id hash of m=%d,t=%d,p=%d; at most m=%d,t=%d,p=%d is checked on requests",
			numbers[0], numbers[1], numbers[2], maxMemory, maxPasses, maxLanes)
	}
	a.memory, a.passes, a.lanes = uint32(numbers[0]), uint32(numbers[1]), uint8(numbers[2])
	return nil
}
