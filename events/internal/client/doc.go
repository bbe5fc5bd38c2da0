// Package client is the common part of the NATS and the Kafka client: the
// lifetime of consumers, readers and leases (Life), the use of a consumer or
// reader by one goroutine at a time (Session), waits, and checks of messages.
//
// Start reading at Life and Session.
package client
