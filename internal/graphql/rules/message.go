package rules

// Message returns the message of a verdict for the client. It contains the name of a
// restricted field's type even if the key may not introspect, as comparable gateways
// do. The verdict must come from this table.
func (t *Table) Message(v Verdict) string {
	switch v.Kind {
	case Depth:
		return "depth limit exceeded"
	case Introspection:
		return "introspection is disabled"
	case Restricted:
		f := &t.schema.Fields[v.Field]
		return "field: " + f.Name + " is restricted on type: " + t.schema.Types[f.Owner].Name
	case AllRestricted:
		return "all fields of " + t.schema.Types[t.schema.Fields[v.Field].Owner].Name + " type are restricted"
	case Aliases:
		return "alias limit exceeded"
	case RootFields:
		return "root field limit exceeded"
	case Directives:
		return "directive limit exceeded"
	case Tokens:
		return "token limit exceeded"
	case CostTooHigh:
		return "cost limit exceeded"
	}
	return ""
}
