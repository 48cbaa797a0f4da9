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

// Confirm asks before an irreversible action. Without a terminal it requires --yes.
func (s *Shell) Confirm(yes bool, what string) error {
	if yes {
		return nil
	}
	if !IsTerminal(s.Stdin) {
		return Exit(ExitUsage, what+": requires --yes without a terminal")
	}
	switch strings.ToLower(s.Question(what + "? [y/N] ")) {
	case "y", "yes":
		return nil
	}
	return Exit(ExitFailed, "left as it is")
}

// Question prints a question and returns the line that is entered, "" for none.
func (s *Shell) Question(text string) string {
	_, _ = fmt.Fprint(s.Stderr, text)
	if s.answers == nil {
		s.answers = bufio.NewReader(s.Stdin)
	}
	line, _ := s.answers.ReadString('\n') // end of file ends a line too
	return strings.TrimSpace(line)
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull) // a character device as well
	return err != nil || !os.SameFile(info, null)
}

// maxSecret bounds a secret that is typed or read, in bytes.
const maxSecret = 64 << 10

// Secret reads a secret: without echo on a terminal, otherwise the first line of standard
// input.
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

// typed reads a line without echo, until ctx ends.
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
	stop := context.AfterFunc(ctx, func() { _ = tty.SetReadDeadline(time.Unix(1, 0)) }) // ends the read
	defer stop()
	if _, err := fmt.Fprint(tty, what+": "); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(tty).ReadString('\n')
	_, _ = fmt.Fprintln(tty) // the line end was not echoed
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return strings.TrimSpace(line), err
}
