// Package httpclient is the connector http_client of event streams.
//
// The input polls a server: it asks again after each period, but for polls that would overlap
// or come late, which are left out. With stream.enabled it takes a message from each line, or
// event, of a response that goes on. It asks while its flow has demand. The templates of a
// poll see the last message that came of a response, empty at first: that is how users of
// comparable engines follow pages and cursors, and send If-None-Match. The position is of the
// process: after a restart, or a change of the stream, polls begin anew.
//
// A server cannot take a message back. One that could not be given out is passed on again
// after a pause, until it is taken, or its error is permanent; at most max_in_flight wait so.
// What is not taken when the stream stops is lost.
//
// The output sends each message as one request, and takes a success as the acknowledgement.
// It makes up to retries further requests by itself, with retry_period doubling up to
// max_retry_backoff or as long as the server asks; a message that waits for the next one holds
// no goroutine. Then it settles the message with the failure, and the retry of the stream
// counts one attempt: a message is sent up to retry.max_attempts × (1 + retries) times, all
// with the same Idempotency-Key. Once a request may have arrived, the class of the failure is
// Unknown even if a later request was refused a connection.
package httpclient
