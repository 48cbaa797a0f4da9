package definition

import (
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

// BrokerSource is the kind of the data sources that are topics of a message broker.
const BrokerSource = "msgbroker"

// Topics returns the stream by which a data source of the kind BrokerSource gives messages to
// subscribers. References to secrets are replaced by stand-ins: call it on InForce to use the
// stream. The error is *Problems with paths in the configuration of the source.
func (a *API) Topics(name string, c *GraphQLSourceConfig, o streams.Options) (*streams.Stream, error) {
	text := func(from, start string) string {
		if a.LiteralSecrets {
			return from
		}
		return standIn(from, start)
	}
	topics := &streams.Topics{
		Name: name, Topics: c.Topics, Group: c.GroupID, ClientID: c.ClientID, FromOldest: !c.StartConsumingLatest,
		Balance: strings.ToLower(strings.TrimPrefix(c.BalanceStrategy, "BalanceStrategy")), OnlyCommitted: c.IsolationLevel == "ReadCommitted",
	}
	for _, address := range c.BrokerAddresses {
		topics.Addresses = append(topics.Addresses, text(address, streams.AddressStandIn))
	}
	if s := c.SASL; s != nil && s.Enable {
		topics.User, topics.Password = text(s.User, streams.StandIn), text(s.Password, streams.StandIn)
	}
	stream, faults := topics.Stream(o)
	if err := asProblems(faults...); err != nil {
		return nil, err
	}
	return stream, nil
}

// brokerSecrets calls do with the texts in which references to secrets count.
func (c *GraphQLSourceConfig) brokerSecrets(at string, do func(secretPlace)) {
	for i := range c.BrokerAddresses {
		address := &c.BrokerAddresses[i]
		do(secretPlace{
			path: object.Item(at+".broker_addresses", i), text: *address, escape: streams.InAddress(*address),
			set: func(with string) { *address = with },
		})
	}
	if s := c.SASL; s != nil {
		do(secretPlace{path: at + ".sasl.user", text: s.User, set: func(with string) { s.User = with }})
		do(secretPlace{path: at + ".sasl.password", text: s.Password, set: func(with string) { s.Password = with }})
	}
}

// checkTopics checks a data source of the kind BrokerSource.
func (p *Problems) checkTopics(at string, a *API, s *GraphQLDataSource) {
	c := &s.Config
	p.leaveOut(at, "the source is of kind "+BrokerSource, []given{
		{"url", c.URL != ""},
		{"method", c.Method != ""},
		{"headers", len(c.Headers) > 0},
		{"query", len(c.Query) > 0},
		{"body", c.Body != ""},
		{"timeout", c.Timeout != 0},
		{"subscription_type", c.SubscriptionType != ""},
		{"sse_use_post", c.SSEUsePost},
		{"has_operation", c.HasOperation},
		{"operation", c.Operation != ""},
		{"variables", len(c.Variables) > 0},
	})
	p.checkOneOf(at+".balance_strategy", c.BalanceStrategy, "BalanceStrategyRange", "BalanceStrategyRoundRobin", "BalanceStrategySticky")
	p.checkOneOf(at+".isolation_level", c.IsolationLevel, "ReadUncommitted", "ReadCommitted")
	if c.BalanceStrategy != "" && c.GroupID == "" {
		p.addf(at+".balance_strategy", "is of a consumer group; set group_id, or leave it out")
	}
	_, err := a.Topics(s.Name, c, streams.Options{})
	p.join(at, err)
}

// checkOneOf checks a text that is one of several or left out.
func (p *Problems) checkOneOf(at, text string, allowed ...string) {
	if text != "" && !slices.Contains(allowed, text) {
		p.addf(at, "must be %s", strings.Join(allowed, ", "))
	}
}

// checkNoTopics reports members of a msgbroker source in one of another kind.
func (p *Problems) checkNoTopics(at string, s *GraphQLDataSource) {
	c := &s.Config
	p.leaveOut(at, "the source is of kind "+s.Kind+", and no message broker", []given{
		{"broker_addresses", len(c.BrokerAddresses) > 0},
		{"topics", len(c.Topics) > 0},
		{"group_id", c.GroupID != ""},
		{"client_id", c.ClientID != ""},
		{"balance_strategy", c.BalanceStrategy != ""},
		{"isolation_level", c.IsolationLevel != ""},
		{"start_consuming_latest", c.StartConsumingLatest},
		{"sasl", c.SASL != nil && c.SASL.Enable},
	})
}

// given says whether a member is in a definition.
type given struct {
	name string
	is   bool
}

// leaveOut reports members of the object at a path that must not be given.
func (p *Problems) leaveOut(at, why string, members []given) {
	for _, one := range members {
		if one.is {
			p.addf(object.Member(at, one.name), "must be left out: %s", why)
		}
	}
}
