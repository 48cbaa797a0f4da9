package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

const includeLine = "include_if_exists = 'sluice.conf'"

// configure writes the server's files at every start, so that a moved base directory, a
// renamed user or a changed option takes effect. The directory belongs to the server user
// while we may be root: os.Root prevents symbolic links from leading outside.
func (s *Server) configure() error {
	root, err := os.OpenRoot(s.layout.data)
	if err != nil {
		return fmt.Errorf("opening the data directory: %w", err)
	}
	main, err := root.ReadFile("postgresql.conf")
	if err == nil && !bytes.Contains(main, []byte(includeLine)) {
		err = s.replace(root, "postgresql.conf", string(main)+"\n"+includeLine+"\n")
	}
	err = errors.Join(err,
		s.replace(root, "sluice.conf", s.settings()),
		s.replace(root, "pg_hba.conf", "local all "+role+" peer map=sluice\n"),
		s.replace(root, "pg_ident.conf", s.identities()),
		root.Close())
	if err != nil {
		return fmt.Errorf("writing the server's configuration: %w", err)
	}
	return nil
}

// replace writes a file atomically, unless it has the text already.
func (s *Server) replace(root *os.Root, name, text string) error {
	if old, err := root.ReadFile(name); err == nil && string(old) == text {
		return nil
	}
	next := name + ".new"
	if err := root.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := root.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err == nil && s.account.change {
		err = file.Chown(s.account.uid, s.account.gid)
	}
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return root.Rename(next, name)
}

// settings returns the text of sluice.conf.
func (s *Server) settings() string {
	durable := "on"
	if s.options.Disposable {
		durable = "off"
	}
	lines := []string{
		"# Written at every start; what you add here is lost.",
		"listen_addresses = ''",
		"port = " + port,
		"unix_socket_directories = '" + s.layout.socketDir + "'",
		"unix_socket_permissions = 0700",
		"fsync = " + durable,
		"full_page_writes = " + durable,
		"synchronous_commit = " + durable,
		"wal_level = minimal",
		"max_wal_senders = 0",
		fmt.Sprintf("max_connections = %d", s.options.MaxConnections),
		"shared_buffers = " + s.options.SharedBuffers,
		"max_wal_size = 256MB",
		"timezone = 'UTC'",
		"log_timezone = 'UTC'",
		"log_min_messages = warning",
		"cluster_name = 'sluice'",
	}
	return strings.Join(lines, "\n") + "\n"
}

// identities returns the text of pg_ident.conf: the system users that may connect as our
// role by peer authentication.
func (s *Server) identities() string {
	text := fmt.Sprintf("sluice %q %s\n", s.account.caller, role)
	if s.account.name != s.account.caller {
		text += fmt.Sprintf("sluice %q %s\n", s.account.name, role)
	}
	return text
}
