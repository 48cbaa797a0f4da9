package snapshot

import (
	"encoding/json"
	"sync"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// sharedStages are stages that are the same for many APIs of a configuration: they
// are compiled once, so that the garbage collector has fewer objects to mark. They
// live as long as one build, so that no stage outlives the APIs that use it.
type sharedStages struct {
	mu     sync.Mutex
	tokens map[tokenAuth]pipeline.Stage
}

// tokenAuth is all that the auth stage of an API depends on that takes tokens only.
type tokenAuth struct {
	org   string
	place string // where the token is, as JSON; "": the default
	strip bool
}

// tokenAuthOf returns that of a definition, or false when it has another auth mode,
// or none.
func tokenAuthOf(def *definition.API) (tokenAuth, bool) {
	if def.UseKeyless || def.UseBasicAuth || def.EnableJWT || def.UseOAuth2 || !def.UsesToken() {
		return tokenAuth{}, false
	}
	key := tokenAuth{org: def.OrgID, strip: def.StripAuthData}
	if def.AuthConfigs["authToken"] == nil && def.Auth == nil {
		return key, true
	}
	place, err := json.Marshal(def.Token())
	key.place = string(place)
	return key, err == nil
}

func newSharedStages() *sharedStages {
	return &sharedStages{tokens: make(map[tokenAuth]pipeline.Stage)}
}

// auth compiles the auth stage, or returns that of another API.
func (c *compilation) auth() (pipeline.Stage, error) {
	key, shareable := tokenAuthOf(c.def)
	if c.shared == nil || !shareable {
		return c.Auth.Compile(c.def)
	}
	if stage := c.shared.token(key, nil); stage != nil {
		return stage, nil
	}
	stage, err := c.Auth.Compile(c.def)
	if err != nil {
		return nil, err
	}
	return c.shared.token(key, stage), nil
}

// token returns the stage of a key: the one that is shared already, or else stage,
// which is shared from then on.
func (s *sharedStages) token(key tokenAuth, stage pipeline.Stage) pipeline.Stage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.tokens[key]; known != nil {
		return known
	}
	if stage != nil {
		s.tokens[key] = stage
	}
	return stage
}
