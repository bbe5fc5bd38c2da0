package objects

import "errors"

// ErrRefused is returned if the store answers and does not permit the request: the
// credentials, the bucket or the clock of this machine are wrong.
var ErrRefused = errors.New("the checkpoint store refuses the request")

var errStalled = errors.New("no bytes were transferred for a minute")
