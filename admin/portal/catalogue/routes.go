package catalogue

import (
	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
)

// Routes lists what the service answers.
func (s *Service) Routes() []rest.Route {
	all := append(s.catalogueRoutes(), s.entryRoutes()...)
	return append(append(all, s.configurationRoutes()...), s.publicRoutes()...)
}

func (s *Service) catalogueRoutes() []rest.Route {
	const path = "/api/portal/catalogue"
	return []rest.Route{
		{
			Method: "GET", Path: path, Summary: "Get the whole catalogue", Tag: "Catalogue", Role: rest.Viewer,
			Reply: Catalogue{}, Handle: s.getCatalogue,
		},
		{
			Method: "POST", Path: path, Summary: "Create the organisation's catalogue", Tag: "Catalogue", Role: rest.Editor,
			Body: Catalogue{}, Reply: rest.Envelope{}, Wrong: []int{400, 409, 413, 415}, Handle: s.createCatalogue,
		},
		{
			Method: "PUT", Path: path, Summary: "Replace the whole catalogue; entries keep their ids", Tag: "Catalogue", Role: rest.Editor,
			Body: Catalogue{}, Reply: rest.Envelope{}, Wrong: []int{400, 404, 409, 413, 415}, Match: true, Handle: s.updateCatalogue,
		},
	}
}

func (s *Service) entryRoutes() []rest.Route {
	const path = "/api/portal/catalogue/entries"
	return []rest.Route{
		{
			Method: "GET", Path: path, Summary: "List entries of the catalogue in its order; q is the beginning of a name", Tag: "Catalogue", Role: rest.Viewer,
			Query: []string{"p", "page_size", "q", "api_id", "policy_id", "show"}, Reply: entryList{}, Wrong: []int{400}, Handle: s.listEntries,
		},
		{
			Method: "POST", Path: path, Summary: "Add an entry at the end of the catalogue", Tag: "Catalogue", Role: rest.Editor,
			Body: model.Entry{}, Reply: rest.Envelope{}, Status: 201, Wrong: []int{400, 409, 413, 415}, Handle: s.createEntry,
		},
		{
			Method: "GET", Path: path + "/{id}", Summary: "Get an entry", Tag: "Catalogue", Role: rest.Viewer,
			Reply: model.Entry{}, Wrong: []int{404}, Handle: s.getEntry,
		},
		{
			Method: "PUT", Path: path + "/{id}", Summary: "Replace an entry", Tag: "Catalogue", Role: rest.Editor,
			Body: model.Entry{}, Reply: rest.Envelope{}, Wrong: []int{400, 404, 409, 413, 415}, Match: true, Handle: s.updateEntry,
		},
		{
			Method: "DELETE", Path: path + "/{id}", Summary: "Delete an entry; keys that came of it go on working", Tag: "Catalogue", Role: rest.Editor,
			Reply: rest.Envelope{}, Wrong: []int{404, 409}, Match: true, Handle: s.deleteEntry,
		},
	}
}

func (s *Service) configurationRoutes() []rest.Route {
	const path = "/api/portal/configuration"
	return []rest.Route{
		{
			Method: "GET", Path: path, Summary: "Get the portal's configuration; without an id it is the default", Tag: "Catalogue", Role: rest.Viewer,
			Reply: model.Configuration{}, Handle: s.getConfiguration,
		},
		{
			Method: "POST", Path: path, Summary: "Create the portal's configuration", Tag: "Catalogue", Role: rest.Editor,
			Body: model.Configuration{}, Reply: rest.Envelope{}, Wrong: []int{400, 409, 413, 415}, Handle: s.createConfiguration,
		},
		{
			Method: "PUT", Path: path, Summary: "Replace the portal's configuration", Tag: "Catalogue", Role: rest.Editor,
			Body: model.Configuration{}, Reply: rest.Envelope{}, Wrong: []int{400, 404, 409, 413, 415}, Match: true, Handle: s.updateConfiguration,
		},
	}
}

func (s *Service) publicRoutes() []rest.Route {
	const path = "/api/portal/public"
	return []rest.Route{
		{
			Method: "GET", Path: path + "/configuration", Summary: "What the pages of the portal have to know", Tag: "Portal", Role: rest.Anyone,
			Query: []string{"org_id"}, Reply: PublicConfiguration{}, Wrong: []int{404, 503}, Handle: s.publicConfiguration,
		},
		{
			Method: "GET", Path: path + "/catalogue", Summary: "What the portal offers; q is the beginning of a name. Where the catalogue is for developers alone, one must be signed in", Tag: "Portal", Role: rest.Anyone,
			Query: []string{"p", "page_size", "q", "api_id", "policy_id", "org_id"}, Reply: offerList{}, Wrong: []int{400, 401, 404, 503}, Handle: s.publicCatalogue,
		},
		{
			Method: "GET", Path: path + "/catalogue/{id}", Summary: "One offer of the portal", Tag: "Portal", Role: rest.Anyone,
			Query: []string{"org_id"}, Reply: Offer{}, Wrong: []int{401, 404, 503}, Handle: s.publicEntry,
		},
		{
			Method: "GET", Path: path + "/catalogue/{id}/documentation", Summary: "The documentation of an offer, made safe to show", Tag: "Portal", Role: rest.Anyone,
			Query: []string{"org_id"}, Reply: Documentation{}, Wrong: []int{401, 404, 503}, Handle: s.publicDocumentation,
		},
		{
			Method: "GET", Path: path + "/catalogue/{id}/routes", Summary: "The routes of the event streams of an offer that its plan admits; path selects those with that path, whatever its parameters are called", Tag: "Portal", Role: rest.Anyone,
			Query: []string{"p", "page_size", "path", "org_id"}, Reply: RouteList{}, Wrong: []int{400, 401, 404, 503}, Handle: s.publicRoutesOfStreams,
		},
		{
			Method: "GET", Path: path + "/catalogue/{id}/routes/{route}", Summary: "A route of the event streams of an offer", Tag: "Portal", Role: rest.Anyone,
			Query: []string{"org_id"}, Reply: Route{}, Wrong: []int{401, 404, 503}, Handle: s.publicRouteOfStreams,
		},
	}
}
