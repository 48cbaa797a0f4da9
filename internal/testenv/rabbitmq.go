package testenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// brokerWithin bounds a start of RabbitMQ, which takes about 5 s on a machine at rest, and
// minutes on one that is overloaded.
const brokerWithin = 5 * time.Minute

// brokerScripts is where Debian keeps the scripts that do not change the user.
const brokerScripts = "/usr/lib/rabbitmq/bin"

// A Broker is a private RabbitMQ server without plugins. Its user is guest with the
// password guest.
type Broker struct {
	Addr    string // host:port of AMQP on the loopback interface
	TLSAddr string // the same with TLS
	Trust   *Authority

	dir     string
	env     []string
	epmd    *exec.Cmd
	run     *exec.Cmd
	killed  bool // the server was, and is not started again
	lock    *os.File
	remover io.Closer
}

// RabbitMQ returns the server of the test process, which starts with the first call and
// ends with the process. Tests use names of their own for exchanges and queues. Without
// RabbitMQ on the machine t is skipped, or fails under SLUICE_TEST_REQUIRE_SERVERS=1.
func RabbitMQ(t testing.TB) *Broker {
	t.Helper()
	needRabbitMQ(t)
	b, err := sharedBroker()
	if err != nil {
		t.Fatalf("starting RabbitMQ for tests: %v", err)
	}
	return b
}

// OwnRabbitMQ starts a server for t alone, which may kill it, change its settings and
// raise its alarms.
func OwnRabbitMQ(t testing.TB) *Broker {
	t.Helper()
	needRabbitMQ(t)
	b, err := StartRabbitMQ()
	if err != nil {
		t.Fatalf("starting RabbitMQ for tests: %v", err)
	}
	t.Cleanup(b.Stop)
	return b
}

func needRabbitMQ(t testing.TB) {
	t.Helper()
	for _, program := range []string{filepath.Join(brokerScripts, "rabbitmq-server"), "epmd"} {
		if _, err := exec.LookPath(program); err != nil {
			unavailable(t, fmt.Errorf("%s is not installed: try apt-get install rabbitmq-server", program))
		}
	}
}

var sharedBroker = sync.OnceValues(StartRabbitMQ)

// StartRabbitMQ starts a server outside of tests. It makes a directory of its own, and
// starts the port mapper of Erlang and the server.
func StartRabbitMQ() (*Broker, error) {
	dir, err := makeDir("sluice-mq-")
	if err != nil {
		return nil, err
	}
	b := &Broker{dir: dir}
	if b.remover, err = removeAtExit(dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := errors.Join(b.hold(), b.configure()); err != nil {
		b.Stop()
		return nil, err
	}
	if err := b.Start(); err != nil {
		b.Stop()
		return nil, err
	}
	return b, nil
}

// hold takes the lock that keeps other test processes from removing the directory.
func (b *Broker) hold() (err error) {
	if b.lock, err = os.Create(filepath.Join(b.dir, "sluice.lock")); err != nil {
		return err
	}
	return syscall.Flock(int(b.lock.Fd()), syscall.LOCK_EX)
}

// configure writes the settings and starts the port mapper, which outlives the server.
func (b *Broker) configure() error {
	ports := make([]int, 4)
	for i := range ports {
		port, err := anyFreePort()
		if err != nil {
			return err
		}
		ports[i] = port
	}
	at := func(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
	b.Addr, b.TLSAddr = at(ports[0]), at(ports[1])
	certificate, err := b.certify()
	if err != nil {
		return err
	}
	settings := []string{
		"listeners.tcp.1 = " + b.Addr, "listeners.ssl.1 = " + b.TLSAddr,
		"disk_free_limit.absolute = 1MB", "vm_memory_high_watermark.relative = 0.6",
		"log.file = false", "log.console = true", "log.console.level = warning",
	}
	files := map[string]string{
		"rabbitmq.conf":   strings.Join(append(settings, certificate...), "\n") + "\n",
		"enabled_plugins": "[].\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	in := func(name string) string { return filepath.Join(b.dir, name) }
	b.env = append(os.Environ(),
		"HOME="+b.dir, "ERL_EPMD_PORT="+strconv.Itoa(ports[2]), "ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_NODENAME=sluice"+strconv.Itoa(ports[0])+"@localhost", "RABBITMQ_CONF_ENV_FILE=/dev/null",
		"RABBITMQ_CONFIG_FILE="+in("rabbitmq.conf"), "RABBITMQ_ENABLED_PLUGINS_FILE="+in("enabled_plugins"),
		"RABBITMQ_MNESIA_BASE="+in("data"), "RABBITMQ_LOG_BASE="+in("log"), "RABBITMQ_GENERATED_CONFIG_DIR="+in("generated"),
		"RABBITMQ_PID_FILE="+in("pid"), "RABBITMQ_DIST_PORT="+strconv.Itoa(ports[3]),
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
		"RUNNING_UNDER_SYSTEMD=1", // the script is replaced by the server, so that their process ids are the same
	)
	b.epmd = exec.Command("epmd", "-port", strconv.Itoa(ports[2]), "-address", "127.0.0.1")
	b.epmd.SysProcAttr = ChildAttr(syscall.SIGKILL)
	return b.epmd.Start()
}

// certify makes the certificate of the listener with TLS and returns its settings.
func (b *Broker) certify() ([]string, error) {
	b.Trust = NewAuthority(panicking{}, "broker of tests")
	identity := b.Trust.Server("127.0.0.1", "localhost")
	var settings []string
	for _, file := range []struct{ setting, name, text string }{
		{"cacertfile", "authority.pem", b.Trust.PEM()}, {"certfile", "certificate.pem", identity.CertPEM}, {"keyfile", "key.pem", identity.KeyPEM},
	} {
		path := filepath.Join(b.dir, file.name)
		if err := os.WriteFile(path, []byte(file.text), 0o600); err != nil {
			return nil, err
		}
		settings = append(settings, "ssl_options."+file.setting+" = "+path)
	}
	return settings, nil
}

// panicking stands for a test where there is none: the server is shared by several.
type panicking struct{ testing.TB }

func (panicking) Helper()                      {}
func (panicking) Fatal(args ...any)            { panic(fmt.Sprint(args...)) }
func (panicking) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }

// Start starts the server, again after Kill, and returns when a queue can be declared. It
// keeps its address and what is durable.
func (b *Broker) Start() error {
	b.run = exec.Command(filepath.Join(brokerScripts, "rabbitmq-server"))
	b.run.Env = b.env
	b.run.SysProcAttr = ChildAttr(syscall.SIGKILL)
	log, err := os.OpenFile(filepath.Join(b.dir, "output"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	b.run.Stdout, b.run.Stderr = log, log
	if err := b.run.Start(); err != nil {
		return err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(brokerWithin); time.Now().Before(end); <-tick.C {
		if err = b.declares(); err == nil {
			return b.elect()
		}
	}
	said, _ := os.ReadFile(log.Name()) // only to explain
	return fmt.Errorf("not ready within %s: %w; its output:\n%s", brokerWithin, err, said)
}

// elect has quorum queues elect their leader after a crash. RabbitMQ 3.10 on one node
// leaves some of them without one at times: they answer nothing then until it is restarted.
func (b *Broker) elect() error {
	if !b.killed {
		return nil
	}
	b.killed = false
	_, err := b.control("eval", `[ra:trigger_election({Queue, node()}) || {Queue, State} <- ets:tab2list(ra_state), State =/= leader].`)
	return err
}

// declares tries to declare a queue.
func (b *Broker) declares() error {
	conn, err := amqp.Dial("amqp://" + b.Addr + "/")
	if err != nil {
		return err
	}
	defer func() { _ = conn.CloseDeadline(time.Now().Add(time.Second)) }()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	_, err = ch.QueueDeclare("", false, true, true, false, nil)
	return err
}

// Kill ends the server as a crash would.
func (b *Broker) Kill() {
	if b.run != nil {
		_ = b.run.Process.Kill() // it may have ended by itself
		_ = b.run.Wait()
		b.run, b.killed = nil, true
	}
}

// SaveQueues has the server write down which queues there are. RabbitMQ 3.10 does so some
// seconds after a queue was declared, and a crash before that loses the queue, or what is in
// a quorum queue, although it was confirmed.
func (b *Broker) SaveQueues(t testing.TB) {
	t.Helper()
	b.Control(t, "eval", "ok = mnesia:sync_log(), [ok = dets:sync(Table) || Table <- dets:all()].")
}

// Suspend stops the server without ending it: it answers nothing until Resume.
func (b *Broker) Suspend() error { return b.run.Process.Signal(syscall.SIGSTOP) }

// Resume lets a suspended server go on.
func (b *Broker) Resume() error { return b.run.Process.Signal(syscall.SIGCONT) }

// Control runs rabbitmqctl and returns what it prints.
func (b *Broker) Control(t testing.TB, args ...string) string {
	t.Helper()
	out, err := b.control(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (b *Broker) control(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), brokerWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(brokerScripts, "rabbitmqctl"), append([]string{"--quiet"}, args...)...)
	cmd.Env = b.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("rabbitmqctl %q: %w\n%s", args, err, out)
	}
	return string(out), nil
}

// Stop ends the server and its port mapper and removes their files.
func (b *Broker) Stop() {
	b.Kill()
	if b.epmd != nil && b.epmd.Process != nil {
		_ = b.epmd.Process.Kill()
		_ = b.epmd.Wait()
	}
	if b.lock != nil {
		_ = b.lock.Close()
	}
	_ = b.remover.Close()
}
