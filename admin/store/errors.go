package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

var (
	// ErrNotFound reports that the organisation has no such object.
	ErrNotFound = errors.New("not found")

	// ErrUnavailable reports that the database could not be reached or did not
	// answer in time. It wraps the cause. A transaction that was being committed may
	// have happened or not, but never in part.
	ErrUnavailable = errors.New("database unavailable")

	// ErrUnstorable reports a text with the character U+0000, which the database
	// cannot store.
	ErrUnstorable = errors.New("text holds the character U+0000")
)

// ConflictKind is what a change conflicts with.
type ConflictKind string

// The kinds of conflict.
const (
	Stale      ConflictKind = "stale"       // the object is not at the version that the caller saw
	TakenID    ConflictKind = "taken id"    // another object has the id
	TakenRoute ConflictKind = "taken route" // another API has the domain and listen path
	TakenName  ConflictKind = "taken name"  // another object has the name
	InUse      ConflictKind = "in use"      // others name the object
	Composed   ConflictKind = "composed"    // supergraphs name the API
	LastAdmin  ConflictKind = "last admin"  // the organisation would have no active admin
	Repeated   ConflictKind = "repeated"    // the call was carried out before
	NotEmpty   ConflictKind = "not empty"   // the organisation still has objects
	FirstOrg   ConflictKind = "first org"   // the organisation is the first one
	TooMany    ConflictKind = "too many"    // the organisation has as many as it may have

	StaleRevision ConflictKind = "stale revision" // the configuration is not at the revision that the caller saw
)

// ConflictError is a change that conflicts with stored objects.
type ConflictError struct {
	Kind    ConflictKind
	Current int64    // the object's version, for Stale; the revision, for StaleRevision
	With    []string // ids of the conflicting objects that the organisation may see
	Index   string   // unique index that found it; "" if a query did
}

// Error says what the conflict is.
func (e *ConflictError) Error() string {
	text := "conflict: " + string(e.Kind)
	if e.Kind == Stale || e.Kind == StaleRevision {
		text += ", the current version is " + strconv.FormatInt(e.Current, 10)
	}
	if len(e.With) > 0 {
		text += ": " + strings.Join(e.With, ", ")
	}
	return text
}

// UnknownAPIsError reports a policy that names APIs that the organisation does not have.
type UnknownAPIsError struct {
	IDs    []string
	Policy string // id of the policy in a batch; "" otherwise
}

// Error names the APIs.
func (e *UnknownAPIsError) Error() string { return "unknown APIs: " + strings.Join(e.IDs, ", ") }

// Translate turns errors of the driver into those of this package.
func Translate(err error) error { return translate(err) }

func translate(err error) error {
	if err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrUnavailable) {
		return err
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNotFound
	}
	// Whatever reason a server gives for refusing a connection, the caller did not cause it.
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok {
		return translateAnswer(answer, err)
	}
	if isTransport(err) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// translateAnswer is translate for errors of the server.
func translateAnswer(answer *pgconn.PgError, err error) error {
	switch answer.Code {
	case "23505":
		return duplicate(answer)
	case "22021", "22P05": // not in the repertoire: U+0000
		return ErrUnstorable
	case "57014", "57P01", "57P02", "57P03", "25006", "25P03", "42P01":
		// Timeout, shutdown, start, standby, idle transaction, tables do not exist yet.
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	switch answer.Code[:2] {
	case "08", "28", "3D", "53", "58", "40":
		// Connection, authorisation, no such database, out of resources, system error,
		// rolled back because of another transaction.
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// duplicate returns the conflict that a unique index found. Queries before the change
// cannot see concurrent ones.
func duplicate(answer *pgconn.PgError) error {
	kind := TakenID
	switch answer.ConstraintName {
	case "apis_route":
		kind = TakenRoute
	case "policies_name", "users_email":
		kind = TakenName
	case "repeatable_calls_pkey":
		kind = Repeated
	}
	return &ConflictError{Kind: kind, Index: answer.ConstraintName}
}

func isTransport(err error) bool {
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return pgconn.SafeToRetry(err) || pgconn.Timeout(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		strings.Contains(err.Error(), "conn closed") || strings.Contains(err.Error(), "closed pool")
}
