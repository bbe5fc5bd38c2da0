package execution

import "errors"

// ErrGroundTruth is returned for a group whose ground truth does not load or
// whose historical tests cannot be read: no retry helps.
var ErrGroundTruth = errors.New("ground truth")
