package control

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
)

const keysPath = "/api/keys"

// keyDetail is a key in the admin's responses.
type keyDetail struct {
	Key     string       `json:"key"` // only in the response that created it
	Hash    string       `json:"key_hash"`
	Session adminSession `json:"data"`
}

// adminSession is a session in the admin's responses, which list its rights in an array
// besides the map.
type adminSession struct{ definition.Session }

// UnmarshalJSON ignores the array.
func (s *adminSession) UnmarshalJSON(data []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return err
	}
	delete(members, "access_rights_array")
	own, err := encode(members)
	if err != nil {
		return err
	}
	return s.Session.UnmarshalJSON(own)
}

// keyPath returns the path of one key, with the query that says how it is named.
func keyPath(ref keys.Ref, more string) (string, error) {
	path, err := at(keysPath, ref.ID)
	if err != nil {
		return "", keys.ErrNotFound
	}
	if ref.Hashed {
		return path + more + "?hashed=true" + ofOrg("&", ref.Org), nil
	}
	return path + more + "?hashed=false" + ofOrg("&", ref.Org), nil
}

func suppress(keepQuota bool) string {
	if keepQuota {
		return "suppress_reset=1"
	}
	return "suppress_reset=0"
}

// doKey makes a call about one key, and converts the admin's errors to those of package
// keys where there is one.
func (a *Admin) doKey(ctx context.Context, method, path string, body, into any) error {
	err := a.do(ctx, method, path, body, into)
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	switch reason, named := strings.CutPrefix(e.Message, "key id "); {
	case e.Status == http.StatusNotFound:
		return keys.ErrNotFound
	case e.Status != http.StatusBadRequest:
		return err
	case named:
		return &keys.CustomError{Reason: reason}
	case strings.Contains(e.Message, keys.ErrMaster.Error()):
		return keys.ErrMaster
	case len(e.Problems) == 1 && e.Problems[0].Path == "apply_policies":
		return &keys.PolicyError{Cause: errors.New(e.Problems[0].Message)}
	}
	return said(err, keyKind.name)
}

// issuedBy returns a key that the admin created or changed, named as the caller named
// it.
func (a *Admin) issuedBy(ref keys.Ref, hash string) keys.Issued {
	switch {
	case ref.Hashed:
		return keys.Issued{Hash: hash}
	case a.opts.ClearKeys:
		return keys.Issued{Key: ref.ID}
	}
	return keys.Issued{Key: ref.ID, Hash: hash}
}

// Create implements Keys.
func (a *Admin) Create(ctx context.Context, custom string, s *definition.Session, keepQuota bool) (keys.Issued, error) {
	path := keysPath
	if custom != "" {
		var err error
		if path, err = at(keysPath, custom); err != nil {
			return keys.Issued{}, &keys.CustomError{Reason: "must not be a dot or two"}
		}
	}
	var made keyDetail
	if err := a.doKey(ctx, http.MethodPost, path+"?"+suppress(keepQuota), s, &made); err != nil {
		return keys.Issued{}, err
	}
	return a.issuedBy(keys.Ref{ID: made.Key}, made.Hash), nil
}

// Update implements Keys.
func (a *Admin) Update(ctx context.Context, ref keys.Ref, s *definition.Session, keepQuota bool) (keys.Issued, error) {
	path, err := keyPath(ref, "")
	if err != nil {
		return keys.Issued{}, err
	}
	var now keyDetail
	err = a.doKey(ctx, http.MethodPut, path+"&"+suppress(keepQuota), s, &now)
	return a.issuedBy(ref, now.Hash), err
}

// Get implements Keys.
func (a *Admin) Get(ctx context.Context, ref keys.Ref) (*definition.Session, string, error) {
	if ref.Hashed && a.opts.ClearKeys {
		return nil, "", keys.ErrNotHashed
	}
	path, err := keyPath(ref, "")
	if err != nil {
		return nil, "", err
	}
	var found keyDetail
	err = a.doKey(ctx, http.MethodGet, path, nil, &found)
	return &found.Session.Session, found.Hash, err
}

// Delete implements Keys. The hash is read first, since the admin's response has none.
func (a *Admin) Delete(ctx context.Context, ref keys.Ref) (keys.Issued, error) {
	_, hash, err := a.Get(ctx, ref)
	if err != nil {
		return keys.Issued{}, err
	}
	path, err := keyPath(ref, "")
	if err != nil {
		return keys.Issued{}, err
	}
	return a.issuedBy(ref, hash), a.doKey(ctx, http.MethodDelete, path, nil, nil)
}

// ResetQuota implements Keys.
func (a *Admin) ResetQuota(ctx context.Context, ref keys.Ref) (keys.Issued, error) {
	_, hash, err := a.Get(ctx, ref)
	if err != nil {
		return keys.Issued{}, err
	}
	path, err := keyPath(ref, "/reset_quota")
	if err != nil {
		return keys.Issued{}, err
	}
	return a.issuedBy(ref, hash), a.doKey(ctx, http.MethodPost, path, nil, nil)
}

// SetPolicies implements Keys.
func (a *Admin) SetPolicies(ctx context.Context, ref keys.Ref, policies []string) (keys.Issued, error) {
	path, err := keyPath(ref, "/policies")
	if err != nil {
		return keys.Issued{}, err
	}
	var now keyDetail
	err = a.doKey(ctx, http.MethodPut, path, &swap{Policies: policies}, &now)
	return a.issuedBy(ref, now.Hash), err
}

// Preview implements Keys.
func (a *Admin) Preview(ctx context.Context, s *definition.Session) (*definition.Session, error) {
	var applied adminSession
	err := a.doKey(ctx, http.MethodPost, keysPath+"/preview", s, &applied)
	return &applied.Session, err
}

// findPage is the largest page of keys that the admin returns.
const findPage = 500

// Find implements Keys.
func (a *Admin) Find(ctx context.Context, f keys.Filter) ([]string, error) {
	query := url.Values{"page_size": {strconv.Itoa(findPage)}}
	if f.Prefix != "" {
		query.Set("q", f.Prefix)
	}
	if f.API != "" {
		query.Set("api_id", f.API)
	}
	orgs, err := a.orgs(ctx, f.Org)
	if err != nil {
		return nil, err
	}
	all := []string{}
	for _, org := range orgs {
		query.Set("org_id", org)
		found, err := a.findIn(ctx, query, f.Prefix)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.Sort(all)
	return all, nil
}

// findIn is Find for the organisation in the query.
func (a *Admin) findIn(ctx context.Context, query url.Values, prefix string) (all []string, err error) {
	for page := int64(1); ; page++ {
		query.Set("p", strconv.FormatInt(page, 10))
		var list struct {
			Data  keyList `json:"data"`
			Pages int64   `json:"pages"`
		}
		if err := a.do(ctx, http.MethodGet, "/api/apis/keys?"+query.Encode(), nil, &list); err != nil {
			return nil, err
		}
		for _, hash := range list.Data.Keys {
			if strings.HasPrefix(hash, prefix) { // the admin searches aliases as well
				all = append(all, hash)
			}
		}
		if page >= list.Pages {
			return all, nil
		}
	}
}
