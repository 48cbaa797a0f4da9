package auth

import (
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/auth/basic"
)

// A presented credential is what a request shows, whether or not it is valid.
type presented struct {
	text []byte // as the client sent it; of a user the name alone
	full string // the key in its full form, of which the identity is the hash
}

// Presented implements pipeline.Presenter.
func (s *stage) Presented(ex *pipeline.Exchange) (text []byte, name string) {
	for i := len(s.modes) - 1; i >= 0; i-- {
		p := s.modes[i].presented(ex)
		if len(p.text) == 0 || len(p.text) > maxToken {
			continue
		}
		hasher := s.sessions.opts.Hasher
		shown := hasher.Shown(hasher.Hash(p.full))
		return p.text, shown[:min(len(shown), nameLength)]
	}
	return nil, ""
}

// presented returns a token.
func (s *source) presented(ex *pipeline.Exchange) presented {
	token := withoutScheme(s.find(ex))
	return presented{text: token, full: string(token)}
}

// presented returns a key, which may be sent with or without the organisation.
func (m *tokenMode) presented(ex *pipeline.Exchange) presented {
	p := m.source.presented(ex)
	p.full = m.sessions.opts.Hasher.Custom(m.scope.org, p.full)
	return p
}

// presented returns a key, or else a certificate.
func (m *certificateMode) presented(ex *pipeline.Exchange) presented {
	if p := m.tokenMode.presented(ex); len(p.text) > 0 || ex.Call.Cert == nil {
		return p
	}
	sum := ex.Call.Cert.Sum
	return presented{text: sum, full: m.org + string(sum)}
}

// presented returns the name of a user in a header.
func (m *passwordMode) presented(ex *pipeline.Exchange) presented {
	value := trim(m.find(ex))
	if len(value) == 0 || len(value) > maxToken {
		return presented{}
	}
	both, colon, fault := basic.Decode(nil, value)
	if fault != basic.Sound {
		return presented{}
	}
	user := both[:colon]
	return presented{text: user, full: m.scope.org + string(user)}
}
