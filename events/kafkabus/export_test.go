package kafkabus

import "time"

// SetAbsence sets the time after which a payload that the brokers do not have was
// never written. It is called before the first read.
func (b *Bus) SetAbsence(d time.Duration) { b.absence = d }
