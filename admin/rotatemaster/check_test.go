package rotatemaster_test

import (
	"errors"
	"testing"

	"github.com/sluicegate/sluice/admin/rotatemaster"
	"github.com/sluicegate/sluice/internal/secret"
)

// refusedKey fails the test unless a key is refused.
func (w *world) refusedKey(what string, key secret.Key) {
	w.t.Helper()
	err := rotatemaster.Check(w.t.Context(), w.store, key)
	if _, refused := errors.AsType[*rotatemaster.WrongKeyError](err); !refused {
		w.t.Errorf("%s: %v, want it to be refused", what, err)
	}
}

func (w *world) acceptedKey(what string, key secret.Key) {
	w.t.Helper()
	if err := rotatemaster.Check(w.t.Context(), w.store, key); err != nil {
		w.t.Errorf("%s: %v", what, err)
	}
}

func TestTheFirstKeyOfADatabaseIsItsMasterKey(t *testing.T) {
	w, one, other := newWorld(t), secret.NewKey(), secret.NewKey()
	w.acceptedKey("the first key", one)
	w.acceptedKey("the first key again", one)
	w.refusedKey("another key", other)
	w.acceptedKey("a key that comes after it", other.After(one))
}

func TestADatabaseWithoutACheckValueKeepsTheKeyOfItsSecrets(t *testing.T) {
	w, one, other := newWorld(t), secret.NewKey(), secret.NewKey()
	w.fill(one, 1)
	w.refusedKey("a key that opens nothing", other)
	w.acceptedKey("the key of the secrets", one)
	w.refusedKey("another key, later", other)
}

func TestARotationChangesTheMasterKeyOfTheDatabase(t *testing.T) {
	w, former, next := newWorld(t), secret.NewKey(), secret.NewKey()
	w.acceptedKey("the former key", former)
	strange := rotatemaster.Rotation{Store: w.store, Former: secret.NewKey(), New: next}
	_, err := strange.Run(t.Context())
	if _, refused := errors.AsType[*rotatemaster.WrongKeyError](err); !refused {
		t.Errorf("a rotation from a key of another database: %v", err)
	}
	look := rotatemaster.Rotation{Store: w.store, Former: former, New: next, DryRun: true}
	if _, err := look.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.acceptedKey("the former key after a look", former)
	w.fill(former, 1)
	rotation := rotatemaster.Rotation{Store: w.store, Former: former, New: next}
	for range 2 { // it can be repeated
		if _, err := rotation.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.acceptedKey("the new key", next)
		w.refusedKey("the former key", former)
	}
}
