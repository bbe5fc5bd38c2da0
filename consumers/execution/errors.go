package execution

import "errors"

// ErrGroundTruth is returned for a group if its ground truth does not load or its
// historical tests cannot be read: no retry helps.
var ErrGroundTruth = errors.New("ground truth")
