package problems

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// SHA256 returns the hash of the content of a set, in hex: of the JSON lines of its
// problems in their order. It does not depend on the format of the file.
func SHA256(set []Problem) (string, error) {
	h := sha256.New()
	out := json.NewEncoder(h)
	for i := range set {
		if err := out.Encode(&set[i]); err != nil {
			return "", fmt.Errorf("hash of problem %q: %w", set[i].ID, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
