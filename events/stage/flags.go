package stage

import "time"

// Flags are the settings of delivery that all workers of a run share.
type Flags struct {
	HoldDeadLetters time.Duration `yaml:"hold-dead-letters" help:"How long the group of a dead letter waits for codea1 deadletter retry before it is dropped; 0 for no wait." default:"0s" min:"0s" change:"resume"`
	// A worker renews its claim on an event three times per ack wait, over the network.
	AckWait time.Duration `yaml:"ack-wait" help:"How long an event whose worker has died waits before another worker gets it." default:"5s" min:"100ms" max:"1h" change:"resume"`
}
