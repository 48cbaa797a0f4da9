package testenv

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
)

// An Oracle is the reference implementation of GraphQL, graphql-js, in a separate
// Node process. It is safe for concurrent use.
type Oracle struct {
	mu    sync.Mutex
	in    io.Writer
	out   *bufio.Reader
	last  int
	known map[string]bool // digests of the schemas that the process has
}

// A Question is a call of an Oracle.
type Question struct {
	// Op is one of
	//
	//	parse        is Source a document? (parseSchema is the same)
	//	validateSDL  is Source a schema, by the rules of definitions and, when they hold, of schemas?
	//	validate     is Source, executable, valid for Schema?
	//	coerce       what do Variables become for an operation of Source?
	//	introspect   what does Source, or the whole introspection query, return for Schema?
	//	clientSDL    Variables, the data of an introspection, as a schema's text
	//	changes      what breaks or is dangerous from Schema to Source, a schema too
	Op            string `json:"op"`
	Schema        string `json:"-"`
	Source        string `json:"source"`
	OperationName string `json:"operationName,omitempty"`
	Variables     any    `json:"variables,omitempty"`

	// MaxErrors bounds what validate and coerce report; 0 is 100.
	MaxErrors int `json:"maxErrors,omitempty"`
	// NoSuggestions removes similar names from messages.
	NoSuggestions bool `json:"-"`
	// Dump makes parse return the document's nodes as one text.
	Dump bool `json:"dump,omitempty"`
}

// An Answer has Errors, or Data that depends on the question.
type Answer struct {
	Errors []OracleError
	Data   json.RawMessage
}

// An OracleError is a GraphQL error.
type OracleError struct {
	Message   string           `json:"message"`
	Locations []OracleLocation `json:"locations"`
}

// An OracleLocation is a location. Both numbers begin at 1; the column counts UTF-16
// units.
type OracleLocation struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// GraphQLJS returns the process's one graphql-js, which starts with the first call (about
// 0.3 s) and ends with the process. It installs the packages if
// necessary. Without Node.js or these packages t is skipped, or fails under
// SLUICE_TEST_REQUIRE_SERVERS=1.
func GraphQLJS(t testing.TB) *Oracle {
	t.Helper()
	NodeModules(t)
	o, err := oracle()
	if err != nil {
		t.Fatalf("starting graphql-js: %v", err)
	}
	return o
}

// Ask returns the answer to q. An invalid question, such as a schema that cannot be
// built, fails t.
func (o *Oracle) Ask(t testing.TB, q Question) Answer {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	a, err := o.exchange(q, false)
	if err == nil && a.UnknownSchema {
		a, err = o.exchange(q, true)
	}
	if err != nil {
		t.Fatalf("asking graphql-js: %v", err)
	}
	if a.Failure != "" {
		t.Fatalf("graphql-js: %s: %s", q.Op, a.Failure)
	}
	return a.Answer
}

// message is an encoded Question.
type message struct {
	ID int `json:"id"`
	Question
	Suggestions bool    `json:"suggestions"`
	Digest      string  `json:"digest,omitempty"`
	Schema      *string `json:"schema,omitempty"` // sent once for each digest
}

// reply is an encoded Answer.
type reply struct {
	ID int
	Answer
	Failure       string
	UnknownSchema bool // the process has dropped it
}

// exchange sends q and reads the answer. It holds the lock, because the process
// answers one question at a time.
func (o *Oracle) exchange(q Question, sendSchema bool) (reply, error) {
	o.last++
	m := message{ID: o.last, Question: q, Suggestions: !q.NoSuggestions}
	if q.Schema != "" {
		sum := sha256.Sum256([]byte(q.Schema))
		m.Digest = hex.EncodeToString(sum[:])
		if sendSchema || !o.known[m.Digest] {
			o.known[m.Digest] = true
			m.Schema = &q.Schema
		}
	}
	line, err := json.Marshal(m)
	if err != nil {
		return reply{}, err
	}
	if _, err := o.in.Write(append(line, '\n')); err != nil {
		return reply{}, err
	}
	line, err = o.out.ReadBytes('\n')
	if err != nil {
		return reply{}, err
	}
	var r reply
	if err := json.Unmarshal(line, &r); err != nil {
		return reply{}, fmt.Errorf("answer %.200s: %w", line, err)
	}
	if r.ID != m.ID {
		return reply{}, fmt.Errorf("answer %d to question %d", r.ID, m.ID)
	}
	return r, nil
}

// oracle is shared by the tests of a process and ends with it.
var oracle = sync.OnceValues(startOracle)

// startOracle runs Node, which ends at the end of its input, and so with this
// process.
func startOracle() (*Oracle, error) {
	dir, err := nodeModules()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("node", "oracle.mjs")
	cmd.Dir = dir
	cmd.SysProcAttr = ChildAttr(syscall.SIGKILL) // also while it is busy
	cmd.SysProcAttr.Setpgid = true               // Ctrl-C is for the tests
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &Oracle{in: in, out: bufio.NewReaderSize(out, 1<<20), known: make(map[string]bool)}, cmd.Start()
}
