package wire

// A Fault is why bytes from a client are not served as a request.
type Fault struct {
	Status int    // HTTP status of the answer; 0: the connection just ends
	Kind   Kind   // for logs and metrics
	Text   string // what is wrong, for the client
}

// Kind groups faults.
type Kind uint8

// The kinds of fault.
const (
	Malformed      Kind = iota // not a request, or one that could be read two ways
	HeaderTooLarge             // head above MaxHeader or MaxHeaders
	URLTooLong                 // target above MaxURL
	BodyTooLarge               // body above MaxBody
	TooSlow                    // not complete within ReadTimeout
	Unsupported                // correct, but not spoken here
)

func malformed(text string) *Fault { return &Fault{400, Malformed, text} }

var (
	faultStart        = malformed("malformed request line")
	faultMethod       = malformed("the method must be in upper case")
	faultVersion      = &Fault{505, Unsupported, "HTTP version not supported, use HTTP/1.1"}
	faultConnect      = &Fault{405, Unsupported, "CONNECT is not served here"}
	faultTarget       = malformed("malformed request target")
	faultHostMismatch = malformed("request target and Host name different hosts")
	faultName         = malformed("malformed header name")
	faultFold         = malformed("folded header lines are not accepted")
	faultValue        = malformed("malformed header value")
	faultLineEnd      = malformed("a line ends without CRLF")
	faultLength       = malformed("content length is not a valid Integer") // as users of comparable gateways know it
	faultTwoLengths   = malformed("more than one body length")
	faultCoding       = &Fault{501, Unsupported, "transfer coding not supported, use chunked"}
	faultCoding10     = malformed("Transfer-Encoding in an HTTP/1.0 request")
	faultNoHost       = malformed("one Host header is required")
	faultHost         = malformed("malformed Host header")
	faultExpect       = &Fault{417, Unsupported, "only 100-continue can be expected"}
	faultHeaders      = &Fault{431, HeaderTooLarge, "too many header lines"}
	faultHead         = &Fault{431, HeaderTooLarge, "request header too large"}
	faultURL          = &Fault{414, URLTooLong, "request URL too long"}
	faultBody         = &Fault{413, BodyTooLarge, "request body too large"}
	faultSlow         = &Fault{408, TooSlow, "request took too long"}
	faultGone         = &Fault{} // the client left, or never was one
)
