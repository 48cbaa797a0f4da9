package config

// A Setting is one value of the effective configuration.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"` // *** for a secret that is set
	Origin string `json:"origin"`
}

// Settings lists every setting of c with its value and where that came from, in
// the order of the reference. origins is what Load returned with c.
func (c *Config) Settings(origins Origins) []Setting {
	fields := fieldsOf(c)
	settings := make([]Setting, 0, len(fields))
	for _, f := range fields {
		settings = append(settings, Setting{Key: f.key, Value: f.String(), Origin: origins[f.key].String()})
	}
	return settings
}
