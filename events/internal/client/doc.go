// Package client is what a client of NATS and one of Kafka have in common: how
// long what they open lives, who may use it, and how they wait.
//
// Start reading at Life and Session.
package client
