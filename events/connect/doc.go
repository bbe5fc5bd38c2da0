// Package connect opens the message bus that a process uses: the NATS or Kafka
// servers of a URL, with their login, or an embedded NATS server.
//
// It owns the flags of a bus and knows the URL schemes. It must not know a
// stage or a command. Start reading at Flags.
package connect
