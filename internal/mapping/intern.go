package mapping

import (
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"weak"

	"github.com/redpanda-data/benthos/v4/public/bloblang"
)

// key identifies a compiled text. An expression is a single value, as in a template.
type key struct {
	text       string
	expression bool
}

// dialect compiles scripts. Those that are in use are found by their text.
type dialect struct {
	env *bloblang.Environment

	mu   sync.Mutex
	kept map[key]*kept
}

// kept is a script that somebody may use, or one that is being compiled.
type kept struct {
	done   chan struct{} // closed when the compilation has ended
	script weak.Pointer[Script]
}

// language is the language, made at the first use.
var language = sync.OnceValue(func() *dialect {
	env, err := restricted()
	if err != nil {
		panic(err) // a name that the library refuses: tests do not get past it
	}
	return newDialect(env)
})

func newDialect(env *bloblang.Environment) *dialect {
	return &dialect{env: env, kept: make(map[key]*kept)}
}

// script returns the compiled script of a key. Equal keys are compiled once at a time.
func (l *dialect) script(k key) (*Script, error) {
	for {
		l.mu.Lock()
		found := l.kept[k]
		if found == nil {
			found = &kept{done: make(chan struct{})}
			l.kept[k] = found
			l.mu.Unlock()
			return l.compileKept(k, found)
		}
		l.mu.Unlock()
		<-found.done
		if s := found.script.Value(); s != nil {
			return s, nil
		}
		l.forget(k, found) // it did not compile, or is no longer used
	}
}

func (l *dialect) compileKept(k key, to *kept) (s *Script, err error) {
	defer func() {
		if s == nil {
			l.forget(k, to)
		}
		close(to.done)
	}()
	if s, err = l.compile(k); err != nil {
		return nil, err
	}
	to.script = weak.Make(s)
	runtime.AddCleanup(s, func(k key) { l.forget(k, to) }, k)
	return s, nil
}

func (l *dialect) forget(k key, one *kept) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept[k] == one {
		delete(l.kept, k)
	}
}

// compile compiles a text, whatever is kept.
func (l *dialect) compile(k key) (s *Script, err error) {
	defer func() {
		if r := recover(); r != nil {
			s, err = nil, &Problem{Message: oneLine(fmt.Sprintf("cannot be compiled: %v", r))}
		}
	}()
	if p := bounded(k.text); p != nil {
		return nil, p
	}
	executor, err := l.env.Parse(k.text)
	if err != nil {
		return nil, problem(err)
	}
	if k.expression {
		if err := l.env.CheckInterpolatedString("${!" + k.text + "}"); err != nil {
			p := problem(err)
			if p.Line == 1 {
				p.Column -= len("${!")
			}
			return nil, p
		}
	}
	if err := boundMaps(executor); err != nil {
		return nil, &Problem{Message: err.Error()}
	}
	return &Script{executor: executor, name: k}, nil
}

// boundMaps bounds the recursion of the named maps of a script. The library's own setting
// bounds only the script itself, and its maps stay at 5000 levels; there is no other way
// to reach them.
func boundMaps(executor *bloblang.Executor) error {
	unwrapped := reflect.ValueOf(executor.XUnwrapper()).MethodByName("Unwrap").Call(nil)[0]
	maps := unwrapped.MethodByName("Maps").Call(nil)[0].MapRange()
	for maps.Next() {
		one, ok := maps.Value().Interface().(interface{ SetMaxMapRecursion(int) })
		if !ok {
			return fmt.Errorf("the recursion of map %q cannot be bounded", maps.Key().String())
		}
		one.SetMaxMapRecursion(maxRecursion)
	}
	return nil
}
