package model

// filled returns a copy in which no list or map is nil, so that JSON has [] and {} in
// place of null.
func filled[T kind](record *T) *T {
	return any(record).(interface{ filled() *T }).filled()
}

func (d *Developer) filled() *Developer {
	if d == nil {
		return nil
	}
	f := *d
	f.Keys = make(map[string][]string, len(d.Keys))
	for id, policies := range d.Keys {
		f.Keys[id] = list(policies)
	}
	f.OAuthClients = make(map[string][]Client, len(d.OAuthClients))
	for policy, clients := range d.OAuthClients {
		f.OAuthClients[policy] = list(clients)
	}
	f.Subscriptions, f.Fields = dictionary(d.Subscriptions), dictionary(d.Fields)
	f.PasswordHistory = list(d.PasswordHistory)
	return &f
}

func (e *Entry) filled() *Entry {
	if e == nil {
		return nil
	}
	f := *e
	f.Config, f.Fields = e.Config.filled(), dictionary(e.Fields)
	return &f
}

func (c *Configuration) filled() *Configuration {
	if c == nil {
		return nil
	}
	f := *c
	f.SignupFields, f.KeyRequestFields, f.RedirectHosts = list(c.SignupFields), list(c.KeyRequestFields), list(c.RedirectHosts)
	return &f
}

func (r *KeyRequest) filled() *KeyRequest {
	f := *r
	f.ApplyPolicies, f.RemovePolicies = list(r.ApplyPolicies), list(r.RemovePolicies)
	f.Fields = dictionary(r.Fields)
	f.Developer, f.Entry = r.Developer.filled(), r.Entry.filled()
	f.Entries = make([]Entry, 0, len(r.Entries))
	for i := range r.Entries {
		f.Entries = append(f.Entries, *r.Entries[i].filled())
	}
	return &f
}

// list returns items, and an empty list in place of nil.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// dictionary returns members, and an empty map in place of nil.
func dictionary[T any](members map[string]T) map[string]T {
	if members == nil {
		return map[string]T{}
	}
	return members
}
