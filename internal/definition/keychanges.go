package definition

// KeyChanges is what the admin answers a gateway that follows the changes of keys.
type KeyChanges struct {
	// Position is what the gateway sends with its next call. It is opaque.
	Position string `json:"position"`

	// Changed lists the hashes of keys that were created, changed or deleted since the
	// position that the gateway sent.
	Changed []string `json:"changed"`

	// Reset says that the position of the gateway is unknown, so that any key may have
	// changed.
	Reset bool `json:"reset,omitempty"`

	// SealKeys are the keys by which sessions in the key store are authenticated, in
	// base64. They are secret.
	SealKeys [][]byte `json:"seal_keys,omitempty"`
}

// KeyNotFound is the message with which the admin answers a gateway that there is no such
// key. The status alone may be that of another server at the address.
const KeyNotFound = "Key not found"
