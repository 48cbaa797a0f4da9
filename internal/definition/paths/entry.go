package paths

import (
	"encoding/json"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// An entry is what the elements of all lists have in common.
type entry struct {
	Path       string `json:"path"`
	Method     string `json:"method,omitempty"`
	IgnoreCase bool   `json:"ignore_case,omitempty"`
	Disabled   bool   `json:"disabled,omitempty"`
}

// A listEntry is an element of a list that decides whether calls pass. In its
// older form it names methods with what they do.
type listEntry struct {
	entry
	Actions map[string]action `json:"method_actions,omitempty"`
}

// An action is what an entry of the older form does with calls of one method.
type action struct {
	Action  string            `json:"action,omitempty"`
	Code    int               `json:"code,omitempty"`
	Data    string            `json:"data,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// A mockEntry is an element of mock_response.
type mockEntry struct {
	entry
	Code    int               `json:"code,omitempty"`
	Body    string            `json:"body,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// A sizeEntry is an element of size_limits.
type sizeEntry struct {
	entry
	Limit int64 `json:"size_limit"`
}

// decode reads an element into a struct, and tells whether that worked.
func decode[T any](r *reader, at string, raw json.RawMessage, into *T) bool {
	faults := object.Decode(raw, into)
	r.faults.Below(at, faults)
	return len(faults) == 0
}

// call checks what an entry says about calls.
func (r *reader) call(at string, e *entry) (Call, bool) {
	c := Call{At: at, Path: e.Path, IgnoreCase: e.IgnoreCase}
	known := r.path(at+".path", e.Path)
	var ok bool
	c.Method, ok = r.method(at+".method", e.Method)
	return c, known && ok
}

// list reads a list that decides whether calls pass.
func (r *reader) list(name string, lists map[string]json.RawMessage) (rules []Rule) {
	for at, element := range r.elements(name, lists) {
		var e listEntry
		if !decode(r, at, element, &e) || e.Disabled {
			continue
		}
		call, ok := r.call(at, &e.entry)
		switch {
		case !ok:
		case len(e.Actions) == 0:
			rules = append(rules, Rule{Call: call})
		case e.Method != "":
			r.faults.Add(at+".method", "stands beside method_actions, which name methods too; leave one of them out")
		default:
			rules = r.actions(rules, call, e.Actions)
		}
	}
	return rules
}

// actions adds one rule for each method that an entry of the older form names.
func (r *reader) actions(rules []Rule, call Call, actions map[string]action) []Rule {
	for _, name := range object.SortedKeys(actions) {
		does, at := actions[name], object.Entry(call.At+".method_actions", name)
		method, ok := r.method(at, name)
		switch {
		case !ok:
			continue
		case method == "":
			r.faults.Add(at, "must be named by a method, such as GET")
			continue
		}
		rule := Rule{Call: call}
		rule.Method = method
		switch does.Action {
		case "", "no_action":
		case "reply":
			reply, ok := r.reply(at, answer{code: does.Code, body: does.Data, bodyName: "data", headers: does.Headers})
			if !ok {
				continue
			}
			rule.Reply = reply
		default:
			r.faults.Addf(at+".action", `must be "no_action" or "reply", not %q`, does.Action)
			continue
		}
		rules = append(rules, rule)
	}
	return rules
}

func (r *reader) mocks(lists map[string]json.RawMessage) {
	for at, element := range r.elements(MockList, lists) {
		var e mockEntry
		if !decode(r, at, element, &e) || e.Disabled {
			continue
		}
		call, ok := r.call(at, &e.entry)
		reply, good := r.reply(at, answer{code: e.Code, body: e.Body, bodyName: "body", headers: e.Headers})
		if ok && good {
			r.rules.Mocks = append(r.rules.Mocks, Mock{Call: call, Reply: *reply})
		}
	}
}

func (r *reader) sizes(lists map[string]json.RawMessage) {
	for at, element := range r.elements(SizeList, lists) {
		var e sizeEntry
		if !decode(r, at, element, &e) || e.Disabled {
			continue
		}
		call, ok := r.call(at, &e.entry)
		if e.Limit < 0 {
			r.faults.Add(at+".size_limit", "must not be negative; 0 is no limit")
		}
		if ok && e.Limit > 0 {
			r.rules.Sizes = append(r.rules.Sizes, Size{Call: call, Bytes: e.Limit})
		}
	}
}
