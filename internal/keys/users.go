package keys

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/password"
)

// The members of a session that the errors of this file name.
const (
	passwordPath = "basic_auth_data.password"
	kindPath     = "basic_auth_data.hash_type"
)

// checkUser refuses a session with a password under an id that cannot be sent as a
// user name (RFC 7617).
func (k *Service) checkUser(id string, s *definition.Session) error {
	if !s.HasPassword() {
		return nil
	}
	switch {
	case k.Options.Passwords == nil:
		return problem(passwordPath, "must be left out: no users are made here")
	case id == "" || credential.HasPrefix(k.Options.Hasher.Prefix, []byte(id)):
		return problem(passwordPath, "must be left out: the key has no name that a user could log in with; make a key with the name as its id instead")
	case strings.Contains(id, ":"):
		return &CustomError{Reason: "must not hold a colon, as it is the name of a user: a colon ends it"}
	}
	return nil
}

// hashPassword replaces a session's password by its hash. A password that is hashed
// already is kept.
func (k *Service) hashPassword(ctx context.Context, s *definition.Session) error {
	if !s.HasPassword() {
		return nil
	}
	b := s.BasicAuth
	if b.HashType != "" {
		kind, err := password.ParseKind(b.HashType)
		if err != nil {
			return problem(kindPath, err.Error())
		}
		if err := password.CheckStored(kind, b.Password); err != nil {
			return problem(passwordPath, err.Error())
		}
		b.HashType = string(kind)
		return nil
	}
	if err := checkPlain(b.Password); err != nil {
		return problem(passwordPath, err.Error())
	}
	stored, err := k.Options.Passwords.Hash(ctx, b.Password)
	if err != nil {
		return err
	}
	b.Password, b.HashType = stored, string(password.Argon2id)
	return nil
}

// checkPlain returns why a password cannot be sent, or nil.
func checkPlain(plain string) error {
	switch {
	case len(plain) > password.MaxLength:
		return fmt.Errorf("must have %d bytes at most", password.MaxLength)
	case strings.Contains(plain, ":"):
		return errors.New("must not hold a colon: that is what ends the user name where the two are sent")
	case strings.ContainsFunc(plain, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return errors.New("must not hold control characters")
	}
	return nil
}

func problem(path, message string) error {
	return &definition.Problems{{Path: path, Message: message}}
}
