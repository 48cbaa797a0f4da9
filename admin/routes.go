package admin

import "github.com/sluicegate/sluice/admin/rest"

// routes lists every route.
func (s *Server) routes() []rest.Route {
	var all []rest.Route
	for _, group := range [][]rest.Route{
		s.apiRoutes(), s.streamRoutes(), s.usesRoutes(), s.graphQLUseRoutes(), s.historyRoutes(), s.originRoutes(), s.schemaRoutes(), s.policyRoutes(), s.keyRoutes(), s.userRoutes(), s.signin.Routes(), s.orgRoutes(),
		s.configRoutes(), s.pulseRoutes(), s.settingsRoutes(), s.eventRoutes(), s.hookRoutes(), s.certificateRoutes(), s.acmeRoutes(), s.secretRoutes(), s.explainRoutes(), s.playgroundRoutes(), s.tryRoutes(), s.applyRoutes(), s.gatewayRoutes(), s.connectionRoutes(), s.portal.Routes(), s.usage.Routes(), s.replay.Routes(), s.openRoutes(),
	} {
		all = append(all, group...)
	}
	return all
}
