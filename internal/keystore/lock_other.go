//go:build !unix

package keystore

import "os"

// lockFile only opens the file: there is no lock that ends with the process.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, journalMode)
}
