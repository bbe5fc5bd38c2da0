package kafkabus_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/plain"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/kafkabus"
)

// aclsFile has the access control lists of the stages' users.
const aclsFile = "acls.txt"

const aclsHead = `# The access control lists of a run on Kafka: a user for each stage. The test of
# this file writes it: go test ./events/kafkabus -run TestACLsFile -rewrite
#
#   grep -v '^#' acls.txt | while read user operation resource pattern name; do
#     kafka-acls.sh --bootstrap-server HOST:9092 --command-config admin.properties --add --allow-principal "User:$user" \
#       --operation $operation --$resource "$(echo $name | sed s/RUN/r1/)" --resource-pattern-type $pattern < /dev/null
#   done
#
# Start the recorder first: only its user may create topics. The commands
# deadletter and replay restore-bus need an operator's login.
#
# An event counts only if its payload is in the topic of its type. A stage can
# therefore not forge the content of another type. Every stage writes to the
# control topic, so it can announce an event without a payload, or answer the
# events of other stages.
`

// acls returns the content of acls.txt.
func acls() string {
	var b strings.Builder
	b.WriteString(aclsHead)
	for _, s := range events.Stages {
		if s.Within != "" {
			continue
		}
		allow := func(operation, resource, pattern, name string) {
			fmt.Fprintf(&b, "%s %s %s %s %s\n", s.Name, operation, resource, pattern, name)
		}
		allow("read", "topic", "prefixed", "codea1.")
		own := eventstest.Publishes(s)
		for _, typ := range own {
			allow("write", "topic", "literal", "codea1."+string(typ))
		}
		if len(own) > 0 {
			allow("write", "topic", "literal", "codea1.control.RUN")
		}
		if s.Replicas == events.One {
			allow("write", "topic", "literal", "codea1.lease.RUN")
		}
		if s.Kind == events.Worker {
			allow("read", "group", "literal", "codea1.RUN."+s.Name)
			for _, topic := range []string{"codea1.dead.RUN", "codea1.retry.RUN." + s.Name} {
				allow("create", "topic", "literal", topic)
				allow("write", "topic", "literal", topic)
			}
		}
		if s.Name == events.StageRecorder {
			allow("create", "topic", "prefixed", "codea1.")
		}
	}
	return b.String()
}

var rewrite = flag.Bool("rewrite", false, "write acls.txt")

// acls.txt has the lists of every stage of events.Stages.
func TestACLsFile(t *testing.T) {
	if *rewrite {
		if err := os.WriteFile(aclsFile, []byte(acls()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(aclsFile)
	if err != nil || string(text) != acls() {
		t.Errorf("%s is not that of events.Stages: go test ./events/kafkabus -run TestACLsFile -rewrite; %v", aclsFile, err)
	}
}

// addACLs gives the users of acls.txt their rights on a run.
func addACLs(t *testing.T, u *tool) {
	t.Helper()
	text, err := os.ReadFile(aclsFile)
	if err != nil {
		t.Fatal(err)
	}
	var list []kafka.ACLEntry
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		entry := kafka.ACLEntry{Host: "*", PermissionType: kafka.ACLPermissionTypeAllow}
		var user, operation, resource, pattern string
		if _, err := fmt.Sscan(lines.Text(), &user, &operation, &resource, &pattern, &entry.ResourceName); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		err := errors.Join(entry.Operation.UnmarshalText([]byte(operation)), entry.ResourceType.UnmarshalText([]byte(resource)),
			entry.ResourcePatternType.UnmarshalText([]byte(pattern)))
		if err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		entry.Principal, entry.ResourceName = "User:"+user, strings.ReplaceAll(entry.ResourceName, "RUN", u.run)
		list = append(list, entry)
	}
	answer, err := u.client.CreateACLs(bounded(t), &kafka.CreateACLsRequest{ACLs: list})
	if err == nil {
		err = errors.Join(answer.Errors...)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Each stage can do its own work with its user of acls.txt, and nothing else.
func TestStageACLsBroker(t *testing.T) {
	address := os.Getenv("CODEA1_KAFKA_SASL")
	if address == "" {
		t.Skip("CODEA1_KAFKA_SASL names no broker")
	}
	u := newTool(t, os.Getenv("CODEA1_KAFKA"))
	addACLs(t, u)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	login := func(user string) *kafkabus.Bus {
		return connect(t, kafkabus.Config{
			Brokers: []string{address}, Mechanism: kafkabus.MechanismPlain, User: user, Password: "p-" + user, CommitInterval: often,
		})
	}
	if _, err := kafkabus.Connect(ctx, kafkabus.Config{
		Brokers: []string{address}, Mechanism: kafkabus.MechanismPlain, User: events.StageRecorder, Password: "wrong", ConnectTimeout: 10 * time.Second,
	}); err == nil {
		t.Error("a wrong password is accepted")
	}
	recorder := login(events.StageRecorder)
	first := eventstest.Encode(eventstest.Posed(u.run, 1, 0))
	if err := recorder.Publish(ctx, first); err != nil {
		t.Fatal(err)
	}
	// The topics of a run that the recorder creates, and those of another run.
	others := []string{"codea1.control.other", "codea1.lease.other", "codea1.dead.other", "x"}
	for _, s := range events.Stages {
		if s.Within == "" {
			stageACLs(ctx, t, u, s, login(s.Name), address, first.ID, others)
		}
	}
	r, err := recorder.Read(ctx, events.ReadConfig{Run: u.run, From: events.Start})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if m, _, err := r.Next(ctx); err != nil || m.ID != first.ID {
		t.Errorf("the run begins with %s, %v", m.ID, err)
	}
}

func stageACLs(ctx context.Context, t *testing.T, u *tool, s events.Stage, bus *kafkabus.Bus, address, first string, others []string) {
	t.Helper()
	r, err := bus.Read(ctx, events.ReadConfig{Run: u.run})
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	if m, _, err := r.Next(ctx); err != nil || m.ID != first {
		t.Errorf("%s reads %s, %v", s.Name, m.ID, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if s.Replicas == events.One {
		l, err := bus.Lease(ctx, events.LeaseConfig{Run: u.run, Name: s.Name, Owner: "host:1", TTL: time.Minute})
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		if err := l.Close(); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	allowed := map[string]bool{}
	for _, typ := range eventstest.Publishes(s) {
		allowed["codea1."+string(typ)] = true
	}
	if len(allowed) > 0 {
		allowed["codea1.control."+u.run] = true
	}
	if s.Replicas == events.One {
		allowed["codea1.lease."+u.run] = true
	}
	if s.Kind == events.Worker {
		allowed["codea1.dead."+u.run], allowed["codea1.retry."+u.run+"."+s.Name] = true, true
		workerACLs(ctx, t, u, s, bus)
	}

	client := &kafka.Client{Addr: kafka.TCP(address), Transport: &kafka.Transport{
		SASL: plain.Mechanism{Username: s.Name, Password: "p-" + s.Name}, MetadataTTL: often,
	}}
	defer client.Transport.(*kafka.Transport).CloseIdleConnections()
	for _, typ := range events.Types() {
		others = append(others, "codea1."+string(typ))
	}
	others = append(others, "codea1.control."+u.run, "codea1.lease."+u.run)
	for _, topic := range others {
		if allowed[topic] {
			continue
		}
		answer, err := client.Produce(ctx, &kafka.ProduceRequest{
			Topic: topic, RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(kafka.Record{Value: kafka.NewBytes([]byte("forged"))}),
		})
		if err == nil {
			err = answer.Error
		}
		if err == nil {
			t.Errorf("%s writes to topic %s", s.Name, topic)
		}
	}
	var deleted *kafka.DeleteTopicsResponse
	err = askController(ctx, func() error {
		deleted, err = client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{"codea1.control." + u.run, "codea1.problem.posed", "codea1.policy.updated"}})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for topic, err := range deleted.Errors {
		if !errors.Is(err, kafka.TopicAuthorizationFailed) {
			t.Errorf("%s deletes topic %s: %v", s.Name, topic, err)
		}
	}
	if s.Name != events.StageRecorder {
		var made *kafka.CreateTopicsResponse
		err := askController(ctx, func() error {
			made, err = client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{Topic: "codea1.mine", NumPartitions: 1, ReplicationFactor: 1}}})
			return err
		})
		if err != nil || !errors.Is(made.Errors["codea1.mine"], kafka.TopicAuthorizationFailed) {
			t.Errorf("%s creates a topic: %v, %v", s.Name, made, err)
		}
	}
}

// askController repeats a request while the client does not know the controller.
// After a start, the metadata of a broker may lack it for a moment.
func askController(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		if !errors.Is(err, kafka.BrokerNotAvailable) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(often):
		}
	}
}

// workerACLs checks that a worker takes an event, retries it, gives up on it and
// publishes its own.
func workerACLs(ctx context.Context, t *testing.T, u *tool, s events.Stage, bus *kafkabus.Bus) {
	t.Helper()
	c, err := bus.Consume(ctx, events.ConsumeConfig{Run: u.run, Name: s.Name, Types: []events.Type{events.TypeProblemPosed}, AckWait: time.Minute, MaxInFlight: 8})
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	for round := range 2 {
		got, err := c.Fetch(ctx, 1, 0)
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %d deliveries, %v", s.Name, len(got), err)
		}
		if round == 0 {
			err = got[0].Retry(ctx, time.Millisecond)
		} else {
			err = got[0].DeadLetter(ctx, "a test")
		}
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	u.knowTopic("codea1.retry." + u.run + "." + s.Name)
	u.knowTopic("codea1.dead." + u.run)
	for _, e := range eventstest.Chain(u.run, 1, 0) {
		if e.Type == s.Makes[0] {
			if err := bus.Publish(ctx, eventstest.Encode(e)); err != nil {
				t.Errorf("%s publishes %s: %v", s.Name, e.Type, err)
			}
		}
	}
}
