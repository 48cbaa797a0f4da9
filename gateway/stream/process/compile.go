package process

import (
	"errors"
	"fmt"

	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/mapping"
)

// compiler builds the nodes of a chain from its end to its beginning.
type compiler struct {
	chain    *Chain
	trial    *trial // nil: this is none
	branches int    // around the processor
	problems []error
}

// list returns the node at which a list of processors begins; next is behind it.
func (p *compiler) list(list []streams.Processor, next node) node {
	steps := make([]*step, len(list))
	for i := range list {
		steps[i] = p.announce(&list[i])
	}
	for i := len(list) - 1; i >= 0; i-- {
		steps[i].next = next
		steps[i].work = p.work(&list[i], steps[i])
		next = steps[i]
	}
	return next
}

// announce makes the step of a processor.
func (p *compiler) announce(of *streams.Processor) *step {
	s := &step{Step: &Step{Path: of.Path, Label: of.Label, Kind: kind(of)}, site: p.chain.site, trial: p.trial, onError: of.OnError}
	if s.Label == "" {
		s.Label = of.Path
	}
	s.waits = of.HTTP != nil || of.Branch != nil
	p.chain.steps = append(p.chain.steps, s.Step)
	return s
}

func kind(of *streams.Processor) string {
	switch {
	case of.Mapping != nil:
		return "mapping"
	case of.Branch != nil:
		return "branch"
	case of.HTTP != nil:
		return "http"
	case of.Switch != nil:
		return "switch"
	case of.Filter != nil:
		return "filter"
	case of.Split != nil:
		return "split"
	case of.Batch != nil:
		return "batch"
	case of.Log != nil:
		return "log"
	case of.DeadLetter != nil:
		return "dead_letter"
	}
	return "sync_response"
}

func (p *compiler) work(of *streams.Processor, s *step) work {
	path := of.Path + "." + s.Kind
	switch {
	case of.Mapping != nil:
		return &mapWork{p.script(path, *of.Mapping), s.next}
	case of.Branch != nil:
		return p.branch(path, of.Branch, s.next)
	case of.HTTP != nil && p.trial != nil && !p.trial.calls:
		return &skipped{s.next}
	case of.HTTP != nil:
		return p.http(path, of.HTTP, s.next)
	case of.Switch != nil:
		return p.cases(path, of.Switch, s)
	case of.Filter != nil:
		return &filterWork{p.script(path, *of.Filter), s.next}
	case of.Split != nil:
		return &splitWork{of.Split.Path, s.next}
	case of.Batch != nil:
		p.outsideBranches(path)
		return p.batch(of.Batch, s)
	case of.Log != nil:
		return p.log(path, of.Log, s)
	case of.DeadLetter != nil:
		p.outsideBranches(path)
		return &buryWork{p.chain, p.template(path, *of.DeadLetter)}
	case of.SyncResponse:
		return &replyWork{p.chain.site.MaxMessageBytes, s.next}
	}
	p.problem(of.Path, errors.New("has no processor"))
	return nil
}

// outsideBranches refuses what settles a message later: a branch waits for its result.
func (p *compiler) outsideBranches(path string) {
	if p.branches > 0 {
		p.problem(path, errors.New("cannot be inside a branch; put it before or after the branch"))
	}
}

func (p *compiler) problem(path string, err error) {
	if _, ok := errors.AsType[*mapping.Problem](err); ok {
		p.problems = append(p.problems, fmt.Errorf("%s:%w", path, err))
		return
	}
	p.problems = append(p.problems, fmt.Errorf("%s: %w", path, err))
}

func (p *compiler) script(path, text string) *mapping.Script {
	script, err := mapping.Compile(text)
	if err != nil {
		p.problem(path, err)
	}
	return script
}

// optional returns nil for no text.
func (p *compiler) optional(path, text string) *mapping.Script {
	if text == "" {
		return nil
	}
	return p.script(path, text)
}

func (p *compiler) template(path string, text streams.Template) *mapping.Template {
	template, err := mapping.CompileTemplate(string(text))
	if err != nil {
		p.problem(path, err)
	}
	return template
}

func (p *compiler) headers(path string, list []streams.Header) []header {
	headers := make([]header, len(list))
	for i, one := range list {
		headers[i] = header{one.Name, p.template(path+"."+one.Name, one.Value)}
	}
	return headers
}

func (p *compiler) log(path string, of *streams.Log, s *step) work {
	w := &logWork{step: s, message: p.template(path+".message", of.Message), fields: p.headers(path+".fields", of.Fields)}
	if of.Level != "" {
		if err := w.level.UnmarshalText([]byte(of.Level)); err != nil {
			p.problem(path+".level", errors.New("want debug, info, warn or error"))
		}
	}
	return w
}

func (p *compiler) branch(path string, of *streams.Branch, next node) work {
	p.branches++
	w := &branchWork{
		request: p.optional(path+".request_map", of.RequestMap),
		first:   p.list(of.Processors, folded{}),
		result:  p.optional(path+".result_map", of.ResultMap),
		next:    next,
	}
	p.branches--
	return w
}

// cases returns the work of a switch at its first case. Behind a case is the next
// processor, the next case's processors (fallthrough), or the next case (continue).
func (p *compiler) cases(path string, list []streams.Case, s *step) work {
	w := &switchWork{next: s.next, cases: make([]switchCase, len(list))}
	bodies := make([]node, len(list))
	for i := len(list) - 1; i >= 0; i-- {
		at := fmt.Sprintf("%s.cases[%d]", path, i)
		after := s.next
		switch {
		case list[i].Fallthrough && i+1 < len(list):
			after = bodies[i+1]
		case list[i].Continue && i+1 < len(list):
			again := *w
			again.from = i + 1
			after = &step{Step: s.Step, site: s.site, trial: s.trial, work: &again, onError: s.onError, next: s.next}
		}
		bodies[i] = p.list(list[i].Processors, after)
		w.cases[i] = switchCase{p.optional(at+".check", list[i].Check), bodies[i]}
	}
	return w
}
