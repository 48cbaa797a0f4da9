// Package match finds the API of a request by host and path, and joins the rest of the
// path to the API's target.
//
// A request's path is decoded once, by [Decode]. The result is only compared: with
// listen paths, path lists and allowed URLs. The path that goes
// upstream is cut from the path as the client sent it, by [Rest] and
// [Target.Join], so that no escape is lost or added on the way. The two forms
// have the same slashes, so that segments counted in one can be cut from the other. Paths on which the gateway and an upstream
// could disagree, those with dot segments above all, are refused by Decode.
//
// Nothing here allocates once it is built, except Decode and Join when the
// buffer they append to is too small. All types are safe for concurrent use but
// [Params], which belongs to one request.
package match
