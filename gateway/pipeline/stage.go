// Package pipeline is the vocabulary that the stages of a request share: the
// stage, the exchange that it handles, the verdict that it returns, the rejection
// that it may end with, and the compiled API that the stages belong to.
package pipeline

// A Stage is one step of an API's request path, compiled for that API.
// Handle runs on every request, concurrently: it does not allocate, and keeps
// no reference to ex nor to bytes reached through it.
type Stage interface{ Handle(ex *Exchange) Verdict }

// A Presenter is a stage that finds the credential of a request without checking it.
type Presenter interface {
	// Presented returns the credential as the client sent it, of a user the name alone,
	// and the name that logs have for a key that is sent so; nil without a credential.
	// It allocates.
	Presented(ex *Exchange) (credential []byte, name string)
}

// A StageKind is what the gateway's stage table says about a stage.
type StageKind struct {
	Name            string // in explanations, traces and refusals
	Rights          bool   // it decides who may call what: tunnels are checked against it again while they are open
	Operations      bool   // it decides on GraphQL operations: those that go on are checked against it again
	Counts          bool   // it counts requests, or puts them off
	CallerDependent bool   // its effect may depend on more than the request's method, path, query and the headers that cache keys hold
}

// A CompiledStage is a stage of an API with its kind.
type CompiledStage struct {
	Stage
	Kind *StageKind
}

// A Verdict says where an exchange goes after a stage.
type Verdict uint8

const (
	Next     Verdict = iota // to the following stage
	Answered                // to the response side: the answer is complete
	Rejected                // to the gateway's error answer, which writes ex.Rejection
)

// Run runs stages in order and returns the first verdict other than Next, or Next
// when every stage let the exchange pass. It sets ex.Stopped to the kind of the
// stage that ended it.
func Run(stages []CompiledStage, ex *Exchange) Verdict {
	for i := range stages {
		if v := stages[i].Handle(ex); v != Next {
			ex.Stopped = stages[i].Kind
			return v
		}
	}
	return Next
}

// Walk is Run with a call of visit after each stage.
func Walk(stages []CompiledStage, ex *Exchange, visit func(s CompiledStage, v Verdict)) Verdict {
	for _, s := range stages {
		v := s.Handle(ex)
		visit(s, v)
		if v != Next {
			ex.Stopped = s.Kind
			return v
		}
	}
	return Next
}

// RunOnly is Run with only the stages of certain kinds.
func RunOnly(stages []CompiledStage, ex *Exchange, which func(*StageKind) bool) Verdict {
	for _, s := range stages {
		if !which(s.Kind) {
			continue
		}
		if v := s.Handle(ex); v != Next {
			return v
		}
	}
	return Next
}

// OfRights reports whether a stage decides who may call what.
func OfRights(k *StageKind) bool { return k.Rights }

// OfOperations reports whether a stage decides who may carry out which GraphQL operation.
func OfOperations(k *StageKind) bool { return k.Rights || k.Operations }

// Uncounted reports whether a stage counts nothing.
func Uncounted(k *StageKind) bool { return !k.Counts }

// A Composite is a stage that calls one of several others.
type Composite interface {
	Stage
	// Parts returns the stages that it chooses from.
	Parts() []Stage
}

// Visit calls visit for a stage and, when it is a composite, for its parts.
func Visit(s Stage, visit func(Stage)) {
	visit(s)
	if c, ok := s.(Composite); ok {
		for _, part := range c.Parts() {
			Visit(part, visit)
		}
	}
}
