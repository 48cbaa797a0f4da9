package cli

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// explanation is the response of a server.
type explanation struct {
	Method   string `json:"method"`
	Path     string `json:"path"`
	Revision string `json:"revision"`
	At       string `json:"at"`
	Key      *struct {
		Name     string   `json:"name"`
		Alias    string   `json:"alias"`
		Policies []string `json:"policies"`
	} `json:"key"`
	Steps []struct {
		API    string `json:"api"` // that the request was passed to; "": the first one
		Stage  string `json:"stage"`
		Result string `json:"result"`
		Said   string `json:"said"`
		Facts  []fact `json:"facts"`
	} `json:"steps"`
	Outcome struct {
		Allowed  bool     `json:"allowed"`
		Status   int      `json:"status"`
		Reason   string   `json:"reason"`
		Event    string   `json:"event"`
		Fix      string   `json:"fix"`
		Untold   []string `json:"untold"`
		Body     string   `json:"body"`
		Upstream *struct {
			Address string   `json:"address"`
			Method  string   `json:"method"`
			Target  string   `json:"target"`
			Added   []string `json:"added"`
			Removed []string `json:"removed"`
			Body    string   `json:"body"`
		} `json:"upstream"`
	} `json:"outcome"`
	Refusal *refusal `json:"refusal"`
}

type fact struct {
	Rule  string `json:"rule"`
	Value string `json:"value"`
	Seen  string `json:"seen"`
	From  string `json:"from"`
}

// refusal is a refused request that a gateway has kept.
type refusal struct {
	ID      string    `json:"id"`
	At      time.Time `json:"at"`
	Stage   string    `json:"stage"`
	Status  int       `json:"status"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Method  string    `json:"method"`
	Path    string    `json:"path"`
	Client  string    `json:"client"`
	API     *struct {
		ID      string `json:"id"`
		Version string `json:"version"`
	} `json:"api"`
	Key      string `json:"key"`
	Policy   string `json:"policy"`
	Revision string `json:"revision"`
	Limits   []struct {
		Kind      string     `json:"kind"`
		Max       int64      `json:"max"`
		Period    string     `json:"period"`
		Remaining int64      `json:"remaining"`
		ResetAt   *time.Time `json:"reset_at"`
	} `json:"limits"`
	Errors   string `json:"errors"`
	Upstream string `json:"upstream"`
	Cause    string `json:"cause"`
}

// results are the marks of a step's result.
var results = map[string]string{"ok": "ok", "answered": "done", "fail": "FAIL", "untold": "?"}

// text is an explanation for people.
func (e *explanation) text(facts bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s  (revision %s%s)\n", e.Method, e.Path, e.Revision, e.when())
	if e.Key != nil {
		fmt.Fprintf(&b, "key %s%s%s\n", e.Key.Name, quoted(e.Key.Alias), listed(e.Key.Policies))
	}
	width := 0
	names := make([]string, len(e.Steps))
	for i, step := range e.Steps {
		names[i] = strings.TrimPrefix(step.API+"/"+step.Stage, "/")
		width = max(width, len(names[i]))
	}
	for i, step := range e.Steps {
		line := fmt.Sprintf("%2d %-*s  %-4s  %s", i+1, width, names[i], results[step.Result], step.Said)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		if facts || step.Result == "fail" {
			for _, f := range step.Facts {
				b.WriteString(strings.Repeat(" ", width+11) + f.text() + "\n")
			}
		}
	}
	e.outcome(&b)
	return b.String()
}

// outcome writes the response that the client gets.
func (e *explanation) outcome(b *strings.Builder) {
	o := &e.Outcome
	if o.Status > 0 {
		fmt.Fprintf(b, " → %d %s", o.Status, oneLine(o.Body))
		if o.Reason != "" {
			b.WriteString("    reason=" + o.Reason)
		}
		if o.Event != "" {
			b.WriteString("    event=" + o.Event)
		}
		b.WriteString("\n")
	}
	if len(o.Untold) > 0 {
		b.WriteString(" untold: what " + strings.Join(o.Untold, ", ") + " would decide then is not known\n")
	}
	if o.Fix != "" {
		b.WriteString(" fix: " + o.Fix + "\n")
	}
	if up := o.Upstream; up != nil {
		fmt.Fprintf(b, " → %s http://%s%s", up.Method, up.Address, up.Target)
		if up.Body != "" {
			b.WriteString("    body: " + up.Body)
		}
		b.WriteString("\n")
		for _, line := range up.Added {
			b.WriteString("   + " + line + "\n")
		}
		for _, name := range up.Removed {
			b.WriteString("   - " + name + "\n")
		}
	}
}

// when describes a time other than now.
func (e *explanation) when() string {
	if e.At == "" {
		return ""
	}
	return ", at " + e.At
}

// text is a rule with its value, the request's value, and its source.
func (f *fact) text() string {
	text := f.Rule + " = " + f.Value
	if f.Seen != "" {
		text += "   request: " + f.Seen
	}
	if f.From != "" {
		text += "   source: " + f.From
	}
	return text
}

// text describes a refused request.
func (r *refusal) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s at %s", r.Method, r.Path, r.At.Format(time.RFC3339))
	if r.Client != "" {
		b.WriteString(" from " + r.Client)
	}
	b.WriteString("\n")
	if r.API != nil {
		fmt.Fprintf(&b, "api %s", r.API.ID)
		if r.API.Version != "" {
			b.WriteString(" version " + r.API.Version)
		}
		fmt.Fprintf(&b, " (revision %s)\n", r.Revision)
	}
	if r.Key != "" {
		b.WriteString("key " + r.Key)
		if r.Policy != "" {
			b.WriteString(", policy " + r.Policy)
		}
		b.WriteString("\n")
	}
	for _, l := range r.Limits {
		fmt.Fprintf(&b, "%s %d of %d left", l.Kind, l.Remaining, l.Max)
		if l.Period != "" {
			b.WriteString(" per " + l.Period)
		}
		if l.ResetAt != nil {
			b.WriteString(", until " + l.ResetAt.Format(time.RFC3339))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s FAIL  %s\n → %d %s    reason=%s\n", r.Stage, r.Message, r.Status, http.StatusText(r.Status), r.Reason)
	if r.Cause != "" {
		fmt.Fprintf(&b, " upstream %s: %s\n", r.Upstream, oneLine(r.Cause))
	}
	if r.Errors != "" {
		b.WriteString(" " + oneLine(r.Errors) + "\n")
	}
	return b.String()
}

func quoted(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf(" %q", text)
}

func listed(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " (policy " + strings.Join(names, ", policy ") + ")"
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
