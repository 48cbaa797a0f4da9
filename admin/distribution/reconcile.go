package distribution

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/sleep"
)

// A ledger is a Shared that knows how far it was written, and that can be compared with
// the database. The position in it is that of the newest change of a key that any admin
// may have delivered: a database that does not have that change was restored from a
// backup, and the store may have keys that it lacks.
type ledger interface {
	Shared

	// Mark raises the position, of which it keeps the text, to a number. It does nothing
	// if the position is higher already.
	Mark(ctx context.Context, seq int64, position string) error

	// Marked returns the position, "" for none.
	Marked(ctx context.Context) (string, error)

	// Sealed reports whether all sessions carry the seal that this process writes.
	Sealed(ctx context.Context) (bool, error)

	// Reconcile writes the entries that the store lacks or has otherwise, deletes the
	// keys of which exist returns none, and then sets the position. Counters stay.
	Reconcile(ctx context.Context, truth keystore.Truth) (keystore.Difference, error)
}

// mark writes to the key store how far it is about to be written.
func (s *Service) mark(ctx context.Context) error {
	if s.ledger == nil {
		return nil
	}
	at, err := s.deps.Store.LastKeyChange(ctx)
	if err != nil {
		return err
	}
	return s.ledger.Mark(ctx, at.Seq, at.String())
}

// watchShared fills a shared key store that is empty or lost its data, and compares one
// with the database that was written by another state of it.
func (s *Service) watchShared() {
	if s.deps.Shared == nil {
		return
	}
	failing := false
	for {
		settled, err := s.checkShared()
		if s.lifetime.Err() != nil {
			return
		}
		if err != nil && !failing {
			s.log.Warn("the key store may lack keys", "err", err)
		}
		if err == nil && failing {
			s.hasten()
		}
		failing = err != nil
		if sleep.For(s.lifetime, untilNextLook(settled, err)) != nil {
			return
		}
	}
}

// hasten delivers at once what was put off while the key store did not answer.
func (s *Service) hasten() {
	ctx, cancel := context.WithTimeout(s.lifetime, workWithin)
	defer cancel()
	if err := s.deps.Store.HastenDeliveries(ctx); err != nil && s.lifetime.Err() == nil {
		s.log.Warn("changed keys wait although the key store answers", "err", err)
	}
	wake(s.late)
}

// epochEvery is the interval of checking whether the key store lost its data.
const epochEvery = 2 * time.Second

// untilNextLook returns the wait after a check of the key store.
func untilNextLook(settled bool, err error) time.Duration {
	switch {
	case err != nil:
		return epochEvery / 8 // what waits is delivered as soon as the store is back
	case !settled:
		return epochEvery / 20 // a delivery holds the lock, and so may the next check find it
	}
	return epochEvery
}

// checkShared fills the key store if it lacks keys, and reconciles it if it was written
// by another state of the database. Settled reports whether the store is complete; it is
// false while another process fills it or delivers keys.
func (s *Service) checkShared() (settled bool, err error) {
	ctx, cancel := context.WithTimeout(s.lifetime, workWithin)
	defer cancel()
	filled, err := s.deps.Shared.Filled(ctx)
	if err != nil {
		return false, err
	}
	if filled {
		return s.checkMark(ctx)
	}
	ran, err := s.fill(s.lifetime, func(ctx context.Context, all iter.Seq2[keystore.Entry, error]) (int, error) {
		s.log.Warn("the key store lacks keys; it is filled")
		if err := s.mark(ctx); err != nil { // read before the keys, so that none is newer
			return 0, err
		}
		return s.deps.Shared.Fill(ctx, all)
	})
	return ran, err
}

// checkMark reconciles the key store unless the database has the change that the store
// is marked with.
func (s *Service) checkMark(ctx context.Context) (settled bool, err error) {
	if s.ledger == nil {
		return true, nil
	}
	text, err := s.ledger.Marked(ctx)
	if err != nil {
		return false, err
	}
	at, err := store.ParseKeyPosition(text)
	if err == nil && text != "" {
		_, err = s.deps.Store.KeyChangesAfter(ctx, at, 1)
		if err == nil && !s.checkedSeal {
			if s.checkedSeal, err = s.ledger.Sealed(ctx); err == nil && !s.checkedSeal {
				err = errOtherSeal
			}
		}
		if err == nil || !errors.Is(err, store.ErrUnknownPosition) && !errors.Is(err, errOtherSeal) {
			return err == nil, err
		}
	}
	s.log.Warn("the key store was not written from this state of the database, or with another gateway.token; they are compared", "position", text, "err", err)
	_, ran, err := s.reconcile(s.lifetime)
	s.checkedSeal = s.checkedSeal || ran && err == nil
	return ran, err
}

// errOtherSeal reports that gateway.token was changed since the store was written. It is
// looked at once: another admin may still have the former token.
var errOtherSeal = errors.New("sessions carry another seal")

// reconcile makes the key store hold what the database has. Ran is false if another
// process fills the store or delivers keys.
func (s *Service) reconcile(ctx context.Context) (found keystore.Difference, ran bool, err error) {
	started := time.Now()
	ran, err = s.deps.Store.FillKeys(ctx, func(all iter.Seq2[store.Delivery, error]) error {
		at, err := s.deps.Store.LastKeyChange(ctx)
		if err != nil {
			return err
		}
		found, err = s.ledger.Reconcile(ctx, keystore.Truth{Entries: entries(all), Exist: s.deps.Store.ExistingKeys, Position: at.String()})
		return err
	})
	s.meters.refilled.Add(float64(found.Written))
	if err != nil {
		return found, ran, fmt.Errorf("comparing the key store with the database: %w", err)
	}
	if ran {
		s.log.Info("the key store holds what the database has", "written", found.Written, "deleted", found.Deleted,
			"unchanged", found.Unchanged, "seconds", time.Since(started).Seconds())
	}
	return found, ran, nil
}

// ErrNotShared reports that keys are in the process, where there is nothing to compare.
var ErrNotShared = errors.New("keys are in this process: there is no key store to compare")

// Sync makes the key store hold what the database has, and returns what differed. Used
// quotas stay. It waits while another process fills the store or delivers keys.
func (s *Service) Sync(ctx context.Context) (keystore.Difference, error) {
	if s.ledger == nil {
		return keystore.Difference{}, ErrNotShared
	}
	for {
		found, ran, err := s.reconcile(ctx)
		if err != nil || ran {
			return found, err
		}
		if err := sleep.For(ctx, epochEvery/20); err != nil {
			return found, fmt.Errorf("comparing the key store with the database: %w", err)
		}
	}
}
