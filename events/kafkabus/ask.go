package kafkabus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/segmentio/kafka-go"

	"codea1/events/internal/client"
)

// ask repeats a request until the brokers have answered it, also across
// outages. They may have executed a request without an answer.
func (b *Bus) ask(ctx context.Context, do func() error) error {
	var wait client.Wait
	for {
		err := do()
		if ended := client.Ended(ctx, b.ctx); err != nil && ended != nil {
			wait.End(false)
			return ended
		}
		if !isPassing(err) {
			wait.End(err == nil)
			return err
		}
		b.failed(&wait, err)
		_ = client.Pause(ctx, b.ctx, retryPause) // the next request notices the end of a context
	}
}

// failed notes that a call waits because of a passing error.
func (b *Bus) failed(wait *client.Wait, err error) {
	patience := sayOutage
	if isUnknown(err) {
		patience = newTopicGrace
	}
	b.outages.Failed(wait, patience, err, "brokers", b.config.Brokers)
}

// orOutage returns client.ErrOutage for a passing error, for callers that must
// know about an outage.
func orOutage(err error) error {
	if isPassing(err) {
		return fmt.Errorf("%w: %w", client.ErrOutage, err)
	}
	return err
}

// isPassing reports whether another try may succeed: the brokers cannot be
// reached, or none of them serves the request for now.
func isPassing(err error) bool {
	if err == nil || isFinal(err) {
		return false
	}
	var answer kafka.Error
	if !errors.As(err, &answer) {
		return true // an error of the connection
	}
	return answer.Temporary() || answer == kafka.BrokerNotAvailable || answer == kafka.ReplicaNotAvailable || answer == kafka.Unknown
}

// isOutage reports whether no broker has answered, which the bus logs.
func isOutage(err error) bool {
	var answer kafka.Error
	return isPassing(err) && !errors.As(err, &answer) && !errors.Is(err, context.DeadlineExceeded)
}

// isFinal reports whether another try fails the same way.
func isFinal(err error) bool {
	for _, final := range []error{
		kafka.SASLAuthenticationFailed, kafka.UnsupportedSASLMechanism, kafka.TopicAuthorizationFailed,
		kafka.ClusterAuthorizationFailed, kafka.InvalidReplicationFactor, kafka.InvalidTopic, kafka.PolicyViolation,
	} {
		if errors.Is(err, final) {
			return true
		}
	}
	var certificate *tls.CertificateVerificationError
	var alert tls.AlertError
	return errors.As(err, &certificate) || errors.As(err, &alert)
}

// reach creates the missing payload topics. If no broker can be reached, it
// fails or, with config.Wait, tries again until ctx ends.
func (b *Bus) reach(ctx context.Context) error {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if !b.config.Wait {
		limited, cancel = context.WithTimeout(ctx, b.config.ConnectTimeout)
	}
	defer cancel()
	var wait client.Wait
	for pause := retryPause; ; pause = min(2*pause, reachPause) {
		var err error
		if b.partitions, err = b.payloadTopics(limited); err == nil {
			wait.End(true)
			return nil
		}
		if !isFinal(err) && ctx.Err() == nil {
			if reason := b.config.diagnose(ctx, b.transport); reason != nil {
				err = reason // the transport reports every problem as "no broker available"
			}
		}
		var dial *net.OpError
		gone := errors.As(err, &dial) && dial.Op == "dial"
		if !b.config.Wait && gone || isFinal(err) || client.Pause(limited, b.ctx, pause) != nil {
			if ctx.Err() != nil {
				err = errors.Join(err, ctx.Err())
			}
			return err
		}
		if b.config.Wait {
			b.failed(&wait, err)
		}
	}
}
