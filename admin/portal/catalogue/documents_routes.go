package catalogue

import "github.com/sluicegate/sluice/admin/rest"

// Routes lists what the service answers.
func (s *Documents) Routes() []rest.Route {
	const path = "/api/portal/documentation"
	return []rest.Route{
		{
			Method: "GET", Path: path, Summary: "List documents without their texts, the oldest first; q is the beginning of a name", Tag: "Documentation", Role: rest.Viewer,
			Query: []string{"p", "page_size", "q", "api_id", "doc_type"}, Reply: documentList{}, Open: true, Wrong: []int{400}, Handle: s.list,
		},
		{
			Method: "POST", Path: path, Summary: "Add a document", Tag: "Documentation", Role: rest.Editor,
			Body: Document{}, Reply: rest.Envelope{}, Wrong: []int{400, 409, 413, 415}, Handle: s.create,
		},
		{
			Method: "GET", Path: path + "/{id}", Summary: "Get a document as it was sent", Tag: "Documentation", Role: rest.Viewer,
			Reply: Document{}, Open: true, Wrong: []int{404}, Handle: s.get,
		},
		{
			Method: "GET", Path: path + "/{id}/preview", Summary: "Get a document as developers see it", Tag: "Documentation", Role: rest.Viewer,
			Query: []string{"api_id"}, Reply: Documentation{}, Open: true, Wrong: []int{404}, Handle: s.preview,
		},
		{
			Method: "PUT", Path: path + "/{id}", Summary: "Replace a document", Tag: "Documentation", Role: rest.Editor,
			Body: Document{}, Reply: rest.Envelope{}, Wrong: []int{400, 404, 409, 413, 415}, Match: true, Handle: s.update,
		},
		{
			Method: "DELETE", Path: path + "/{id}", Summary: "Delete a document", Tag: "Documentation", Role: rest.Editor,
			Query: []string{"force"}, Reply: rest.Envelope{}, Wrong: []int{404, 409}, Match: true, Handle: s.remove,
		},
	}
}
