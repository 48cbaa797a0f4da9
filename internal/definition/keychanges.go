package definition

// KeyChanges is what the admin answers a gateway that follows the changes of keys.
type KeyChanges struct {
	// Position to be sent with the next call, as the parameter position. It is opaque.
	// Example: "1042"
	Position string `json:"position"`

	// Hashes of the keys that were created, changed or deleted since the position that was sent.
	// Example: []
	Changed []string `json:"changed"`

	// Whether the position that was sent is unknown, so that any key may have changed.
	Reset bool `json:"reset,omitempty"`

	// Keys by which sessions in the key store are authenticated, in base64. They are secret.
	// Example: []
	SealKeys [][]byte `json:"seal_keys,omitempty"`
}

// KeyNotFound is the message with which the admin answers a gateway that there is no such
// key. The status alone may be that of another server at the address.
const KeyNotFound = "Key not found"
