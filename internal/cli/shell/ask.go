package shell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Confirm asks whether to go on with what cannot be taken back. Where nobody can
// answer, --yes has to have said so.
func (s *Shell) Confirm(yes bool, what string) error {
	if yes {
		return nil
	}
	if !IsTerminal(s.Stdin) {
		return Exit(ExitUsage, what+": say --yes, as nobody can be asked here")
	}
	switch strings.ToLower(s.Question(what + "? [y/N] ")) {
	case "y", "yes":
		return nil
	}
	return Exit(ExitFailed, "left as it is")
}

// Question asks, and returns the line that answers: "" when there is none.
func (s *Shell) Question(text string) string {
	_, _ = fmt.Fprint(s.Stderr, text)
	if s.answers == nil {
		s.answers = bufio.NewReader(s.Stdin)
	}
	line, _ := s.answers.ReadString('\n') // the end of what is said ends an answer too
	return strings.TrimSpace(line)
}

// IsTerminal tells whether a person is at the other end of a stream.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull) // which is a device, too
	return err != nil || !os.SameFile(info, null)
}

// maxSecret bounds a secret that is typed or read, in bytes.
const maxSecret = 64 << 10

// Secret asks for what nobody is to see. Where no person is at standard input it
// is the first line there.
func (s *Shell) Secret(ctx context.Context, what string) (string, error) {
	if !IsTerminal(s.Stdin) {
		line, err := bufio.NewReader(io.LimitReader(s.Stdin, maxSecret)).ReadString('\n')
		if line = strings.TrimSpace(line); line == "" {
			if err == nil || errors.Is(err, io.EOF) {
				err = errors.New("standard input is empty")
			}
			return "", fmt.Errorf("reading %s: %w", what, err)
		}
		return line, nil
	}
	line, err := s.typed(ctx, what)
	if err != nil {
		return "", fmt.Errorf("reading %s from the terminal: %w", what, err)
	}
	return line, nil
}

// typed reads a line that the terminal does not show. The end of ctx ends it.
func (s *Shell) typed(ctx context.Context, what string) (string, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer tty.Close()
	show, err := hideInput(tty)
	if err != nil {
		return "", err
	}
	defer show()
	stop := context.AfterFunc(ctx, func() { _ = tty.SetReadDeadline(time.Unix(1, 0)) }) // else it waits for a line
	defer stop()
	if _, err := fmt.Fprint(tty, what+": "); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(tty).ReadString('\n')
	_, _ = fmt.Fprintln(tty) // the line end was not shown either
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return strings.TrimSpace(line), err
}
