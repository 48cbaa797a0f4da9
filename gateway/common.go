package gateway

import (
	"encoding/json"
	"sync"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// A common holds stages that are the same for many APIs of a configuration: what
// each has of its own, a collection of garbage has to look at. It is as short-lived
// as the compilation, so that nothing stays that no API needs any more.
type common struct {
	mu     sync.Mutex
	tokens map[tokens]pipeline.Stage
}

// tokens is all that a stage depends on which asks callers for a token, and for
// nothing else.
type tokens struct {
	org   string
	place string // where the token is, as JSON; "": nothing is said
	strip bool
}

// tokensOf returns that of a definition. It returns false when callers show
// something else, or nothing.
func tokensOf(def *definition.API) (tokens, bool) {
	if def.UseKeyless || def.UseBasicAuth || def.EnableJWT || def.UseOAuth2 || !def.UsesToken() {
		return tokens{}, false
	}
	key := tokens{org: def.OrgID, strip: def.StripAuthData}
	if def.AuthConfigs["authToken"] == nil && def.Auth == nil {
		return key, true
	}
	place, err := json.Marshal(def.Token())
	key.place = string(place)
	return key, err == nil
}

// together returns stages that make for several APIs at once what is the same for
// them.
func (s *Stages) together() *Stages {
	all := *s
	all.common = &common{tokens: make(map[tokens]pipeline.Stage)}
	return &all
}

// auth makes the stage that has callers say who they are, or returns that of another
// API.
func (s *Stages) auth(def *definition.API) (pipeline.Stage, error) {
	key, same := tokensOf(def)
	if s.common == nil || !same {
		return s.Auth.Compile(def)
	}
	if made := s.common.token(key, nil); made != nil {
		return made, nil
	}
	stage, err := s.Auth.Compile(def)
	if err != nil {
		return nil, err
	}
	return s.common.token(key, stage), nil
}

// token returns the stage for a key: the one there is, or else the one given, which
// it keeps.
func (c *common) token(key tokens, stage pipeline.Stage) pipeline.Stage {
	c.mu.Lock()
	defer c.mu.Unlock()
	if made := c.tokens[key]; made != nil {
		return made
	}
	if stage != nil {
		c.tokens[key] = stage
	}
	return stage
}
