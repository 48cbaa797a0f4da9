// Package match finds the API that a request is for, and joins what is left of
// its path to the API's target.
//
// A request's path is read once, by [Decode]. Its result is for comparing only:
// listen paths, path lists and allowed URLs are held against it. What goes
// upstream is cut from the path as the client wrote it, by [Rest] and
// [Target.Join], so that no escape is lost or added on the way. The two forms
// have their slashes in the same places; that is what makes counting segments in
// one and cutting the other exact. Paths on which the gateway and an upstream
// could disagree, those with dot segments above all, are refused by Decode.
//
// Nothing here allocates once it is built, except Decode and Join when the
// buffer they append to is too small. All types are safe for concurrent use but
// [Params], which belongs to one request.
package match
