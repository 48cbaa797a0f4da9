package embedded

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Supervision asks the server a handful of fixed questions. That much of
// PostgreSQL's protocol (version 3.0: start-up and simple query, no password,
// no TLS) is spoken here, so that the supervisor depends on no driver and sees
// the error codes that tell "starting up" from "broken".

// maxMessage bounds one message, far above any answer to our questions.
const maxMessage = 1 << 20

// serverError is a refusal by the server itself.
type serverError struct {
	Code    string // SQLSTATE
	Message string
}

// Error is the server's own words.
func (e *serverError) Error() string { return e.Message + " (SQLSTATE " + e.Code + ")" }

// PostgreSQL's codes for what heals by waiting.
const (
	codeNotNow  = "57P03" // starting up, recovering or shutting down
	codeTooMany = "53300" // every connection is taken
)

// link is one connection to the server.
type link struct {
	conn   net.Conn
	in     *bufio.Reader
	detach func() bool // from the context that dial was given
}

// dial connects as our role. When ctx ends, whatever waits on the connection fails.
func dial(ctx context.Context, socket, db string) (*link, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	l := &link{conn: conn, in: bufio.NewReader(conn)}
	l.detach = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	if err := l.startUp(db); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *link) startUp(db string) error {
	body := binary.BigEndian.AppendUint32(nil, 3<<16) // protocol 3.0
	for _, word := range []string{"user", role, "database", db, "application_name", "sluice supervisor"} {
		body = append(append(body, word...), 0)
	}
	message := binary.BigEndian.AppendUint32(nil, uint32(len(body)+5))
	if _, err := l.conn.Write(append(append(message, body...), 0)); err != nil {
		return fmt.Errorf("greeting the server: %w", err)
	}
	_, err := readAnswer(l.in)
	return err
}

// query runs one statement and returns the first column of each row.
func (l *link) query(sql string) ([]string, error) {
	message := binary.BigEndian.AppendUint32([]byte{'Q'}, uint32(len(sql)+5))
	if _, err := l.conn.Write(append(append(message, sql...), 0)); err != nil {
		return nil, fmt.Errorf("asking the server: %w", err)
	}
	return readAnswer(l.in)
}

// close takes leave politely: the server logs a connection that just breaks off.
func (l *link) close() {
	l.detach()
	_, _ = l.conn.Write([]byte{'X', 0, 0, 0, 4})
	_ = l.conn.Close()
}

// readAnswer reads until the server is ready for the next question.
func readAnswer(in *bufio.Reader) ([]string, error) {
	var rows []string
	var refusal *serverError
	for {
		kind, body, err := readMessage(in)
		if err != nil && refusal != nil {
			return nil, refusal // a fatal one: the server closes after it
		}
		if err != nil {
			return nil, fmt.Errorf("reading the server's answer: %w", err)
		}
		switch kind {
		case 'R':
			if len(body) != 4 || binary.BigEndian.Uint32(body) != 0 {
				return nil, errors.New("the server wants a password: its pg_hba.conf is not ours")
			}
		case 'D':
			rows = append(rows, firstColumn(body))
		case 'E':
			refusal = parseError(body)
		case 'Z':
			if refusal != nil {
				return nil, refusal
			}
			return rows, nil
		}
	}
}

func readMessage(in *bufio.Reader) (kind byte, body []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(head[1:])
	if length < 4 || length > maxMessage {
		return 0, nil, fmt.Errorf("message %q claims a length of %d", head[0], length)
	}
	body = make([]byte, length-4)
	_, err = io.ReadFull(in, body)
	return head[0], body, err
}

// firstColumn returns "" for NULL, for a row without columns and for nonsense.
func firstColumn(body []byte) string {
	if len(body) < 6 || binary.BigEndian.Uint16(body) == 0 {
		return ""
	}
	length, value := int32(binary.BigEndian.Uint32(body[2:])), body[6:]
	if length < 0 || int(length) > len(value) {
		return ""
	}
	return string(value[:length])
}

// parseError reads the fields of an error: a letter and a text each, ended by zero.
func parseError(body []byte) *serverError {
	refusal := &serverError{Message: "refused without a reason"}
	for field := range bytes.SplitSeq(body, []byte{0}) {
		if len(field) < 2 {
			continue
		}
		switch field[0] {
		case 'C':
			refusal.Code = string(field[1:])
		case 'M':
			refusal.Message = string(field[1:])
		}
	}
	return refusal
}
