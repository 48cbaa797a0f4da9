package doctor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// store looks at the shared store of keys and counters, where there is one, and
// compares its clock.
func (d *Doctor) store(ctx context.Context) {
	v := d.Config.Valkey
	if v.URL.Reveal() == "" {
		d.add(OK, "store", "sessions and counters live in the process: one gateway needs no more", "")
		return
	}
	u, err := url.Parse(v.URL.Reveal())
	if err != nil || u.Scheme != "redis" && u.Scheme != "unix" || v.TLS || v.Cluster || v.SentinelMaster != "" || strings.Contains(u.Host, ",") {
		d.add(OK, "store", "is reached over TLS or is several servers: see what the gateway says of it", "")
		return
	}
	at := placeOf(u, v.Username, v.Password.Reveal())
	ahead, err := at.clock(ctx, d.Now)
	if err != nil {
		d.add(Fail, "store", at.address+": "+cause(err).Error(), "start it, or set valkey.url to where it runs, with its password")
		return
	}
	d.add(OK, "store", at.address+" answers", "")
	d.skew("clock of the store", ahead)
}

// A place is where a store is, and what it wants to be shown.
type place struct{ network, address, username, password string }

func placeOf(u *url.URL, username, password string) place {
	at := place{"tcp", u.Host, username, password}
	if u.User != nil {
		at.username = u.User.Username()
		at.password, _ = u.User.Password()
	}
	if at.username == "" {
		at.username = "default"
	}
	if u.Scheme == "unix" {
		at.network, at.address = "unix", u.Path
	} else if u.Port() == "" {
		at.address = net.JoinHostPort(u.Hostname(), "6379")
	}
	return at
}

// clock asks a store for its time, and returns how far that is ahead.
func (at *place) clock(ctx context.Context, now func() time.Time) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, at.network, at.address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return 0, err
		}
	}
	in := bufio.NewReader(conn)
	if at.password != "" {
		if _, err := command(conn, in, "AUTH", at.username, at.password); err != nil {
			return 0, err
		}
	}
	began := now()
	answer, err := command(conn, in, "TIME")
	if err != nil {
		return 0, err
	}
	if len(answer) != 2 {
		return 0, errors.New("answers TIME in another way")
	}
	seconds, err := strconv.ParseInt(answer[0], 10, 64)
	if err != nil {
		return 0, errors.New("answers TIME in another way")
	}
	micros, err := strconv.ParseInt(answer[1], 10, 64)
	if err != nil {
		return 0, errors.New("answers TIME in another way")
	}
	return time.Unix(seconds, micros*1000).Sub(began), nil
}

// command sends a command and reads its answer, a line or an array of texts.
func command(conn net.Conn, in *bufio.Reader, words ...string) ([]string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(conn, b.String()); err != nil {
		return nil, err
	}
	kind, text, err := line(in)
	switch {
	case err != nil:
		return nil, err
	case kind == '-':
		return nil, fmt.Errorf("answers %s with: %s", words[0], text)
	case kind != '*':
		return []string{text}, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 16 {
		return nil, errors.New("answers what is no answer of a store")
	}
	var all []string
	for range n {
		if _, _, err := line(in); err != nil { // the length, which a text without line ends does not need
			return nil, err
		}
		item, err := in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		all = append(all, strings.TrimRight(item, "\r\n"))
	}
	return all, nil
}

func line(in *bufio.Reader) (kind byte, text string, err error) {
	whole, err := in.ReadString('\n')
	if err != nil {
		return 0, "", err
	}
	if len(whole) < 3 || !strings.ContainsRune("+-:$*", rune(whole[0])) {
		return 0, "", errors.New("answers what is no answer of a store")
	}
	return whole[0], strings.TrimRight(whole[1:], "\r\n"), nil
}

// fetch reads the JSON that a server answers.
func fetch(ctx context.Context, from string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return bare(err)
	}
	defer resp.Body.Close()
	return json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(into)
}

func sorted[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
