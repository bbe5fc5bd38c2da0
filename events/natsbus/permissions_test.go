package natsbus_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/natsbus"
)

const (
	permissionsFile = "permissions.conf"
	stageAPI        = "CODEA1.API" // the JetStream API in the account of a stage
)

// passwordVariable returns the environment variable of a user's password.
func passwordVariable(user string) string {
	return "BUS_PASSWORD_" + strings.ToUpper(strings.ReplaceAll(user, "-", "_"))
}

// permissionsHead begins permissions.conf.
const permissionsHead = `# A NATS server with a login for each stage, an operator and a tap. The test of
# this file writes it: go test ./events/natsbus -run TestPermissionsFile -rewrite
#
#   nats-server -c permissions.conf -sd DIRECTORY
#   codea1 stage rewards --run r1 --bus nats://HOST:4222 --bus-user rewards \
#       --bus-password-file FILE --bus-api-prefix ` + stageAPI + `
#
# The passwords come from the environment of the server. Each begins with a
# letter. operator is for the commands deadletter, replay fork and replay
# restore-bus, and for train; it takes no --bus-api-prefix.
#
# Every stage has an account of its own. A list of permissions for users of one
# account would not be enough: the server publishes answers to any subject that a
# request names for its answer, also one that is denied to the sender. Here such an
# answer stays in the account of the sender.

max_payload: 16MB
jetstream { max_file_store: 1TB }

accounts {
  codea1 {
    jetstream: enabled
    users: [
      { user: operator, password: $BUS_PASSWORD_OPERATOR }
      { user: tap, password: $BUS_PASSWORD_TAP, permissions: { publish: { deny: ">" }, subscribe: { allow: "codea1.>" } } }
    ]
    exports: [
      { service: "codea1.>" }
      { service: "$JS.API.>", response_type: stream }
      { service: "$JS.ACK.>" }
      { service: "$KV.>" }
    ]
  }
`

// permissions returns the configuration file of the stages' logins.
func permissions() string {
	var b strings.Builder
	b.WriteString(permissionsHead)
	for _, s := range events.Stages {
		if s.Within == "" {
			writeAccount(&b, s)
		}
	}
	return b.String() + "}\n"
}

func writeAccount(b *strings.Builder, s events.Stage) {
	api := []string{
		"INFO", "STREAM.INFO.*", "DIRECT.GET.*", "DIRECT.GET.*.>",
		"CONSUMER.CREATE.*.>", "CONSUMER.INFO.*.*", "CONSUMER.DELETE.*.*", "CONSUMER.MSG.NEXT.*.*",
	}
	var direct []string
	if s.Kind == events.Worker {
		direct = append(direct, "codea1.*.dead."+s.Name+".*.*", "$JS.ACK.*."+s.Name+".>")
	}
	if s.Name == events.StageRecorder {
		api = append(api, "STREAM.CREATE.*", "STREAM.UPDATE.*")
	}
	for _, typ := range eventstest.Publishes(s) {
		direct = append(direct, "codea1.*."+string(typ)+".*", "codea1.*.again."+string(typ)+".*.*")
	}
	var imports, allow, deny []string
	add := func(subject, name string) {
		entry := fmt.Sprintf("{ service: { account: codea1, subject: %q }", subject)
		if name != subject {
			entry += fmt.Sprintf(", to: %q", name)
		}
		imports, allow = append(imports, entry+" }"), append(allow, fmt.Sprintf("%q", name))
	}
	for _, subject := range direct {
		add(subject, subject)
	}
	if s.Replicas == events.One { // its lease
		add("$KV.*."+s.Name, stageAPI+".$KV.*."+s.Name)
	}
	for _, request := range api {
		add("$JS.API."+request, stageAPI+"."+request)
	}
	for _, w := range workers() { // the worker sets of the others
		if w.Name != s.Name {
			for _, request := range []string{"CREATE.*.%s", "CREATE.*.%s.>", "DELETE.*.%s", "MSG.NEXT.*.%s"} {
				deny = append(deny, fmt.Sprintf("%q", fmt.Sprintf(stageAPI+".CONSUMER."+request, w.Name)))
			}
		}
	}
	list := func(values []string) string { return "[\n        " + strings.Join(values, "\n        ") + "\n      ]" }
	fmt.Fprintf(b, "  %s {\n    users: [ { user: %s, password: $%s, permissions: { publish: {\n      allow: %s\n      deny: %s\n    } } } ]\n",
		s.Name, s.Name, passwordVariable(s.Name), list(allow), list(deny))
	fmt.Fprintf(b, "    imports: %s\n  }\n", list(imports))
}

// workers are the worker stages of all runs.
func workers() []events.Stage {
	return slices.DeleteFunc(slices.Clone(events.Stages), func(s events.Stage) bool { return s.Kind != events.Worker })
}

var rewrite = flag.Bool("rewrite", false, "write permissions.conf")

// permissions.conf has a login for every stage of events.Stages.
func TestPermissionsFile(t *testing.T) {
	if *rewrite {
		if err := os.WriteFile(permissionsFile, []byte(permissions()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(permissionsFile)
	if err != nil || string(text) != permissions() {
		t.Errorf("%s is not that of events.Stages: go test ./events/natsbus -run TestPermissionsFile -rewrite; %v", permissionsFile, err)
	}
}

// Each stage can do its own work with its login of permissions.conf, and
// nothing else.
func TestStageLogins(t *testing.T) {
	users := []string{"operator", "tap"}
	for _, s := range events.Stages {
		if s.Within == "" {
			users = append(users, s.Name)
		}
	}
	for _, user := range users {
		t.Setenv(passwordVariable(user), "p-"+user)
	}
	options, err := natsserver.ProcessConfigFile(permissionsFile)
	if err != nil {
		t.Fatal(err)
	}
	options.StoreDir = t.TempDir()
	url := startServer(t, options)
	ctx := bounded(t)
	login := func(user string) *natsbus.Bus {
		return connectTo(t, natsbus.Config{URL: url, User: user, Password: "p-" + user, APIPrefix: stageAPI})
	}
	if _, err := nats.Connect(url); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("without a login: %v", err)
	}
	operator, js := raw(t, strings.Replace(url, "://", "://operator:p-operator@", 1))
	tap, refused := suspect(t, strings.Replace(url, "://", "://tap:p-tap@", 1))
	for _, subject := range hostile() {
		if err := tap.PublishRequest(subject, "codea1.r1.policy.updated.forged-0", nil); err != nil {
			t.Fatal(err)
		}
		refused("tap publishes to " + subject)
	}
	for _, subject := range []string{">", "_INBOX.>", "$JS.>", "$KV.>", "$SYS.>"} {
		if _, err := tap.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		refused("tap subscribes to " + subject)
	}
	tapped, err := tap.SubscribeSync("codea1.r1.>")
	if err != nil {
		t.Fatal(err)
	}

	recorder := login(events.StageRecorder)
	if err := recorder.EnsureStream(ctx, "r1"); err != nil {
		t.Fatal(err)
	}
	if err := recorder.EnsureStream(ctx, "r1"); err != nil { // applies a limit
		t.Fatal(err)
	}
	list := posed(1)
	if err := recorder.Publish(ctx, list...); err != nil {
		t.Fatal(err)
	}
	if m, err := tapped.NextMsgWithContext(ctx); err != nil || m.Header.Get("ce-id") != list[0].ID {
		t.Errorf("the tap reads %v, %v", m, err)
	}
	stored := map[string]bool{"codea1.r1.problem.posed.s000001-q0000": true}
	leases := map[string]bool{}
	// Each stage publishes the event that forges one of another stage, where the
	// other stage would publish it later.
	chain := map[events.Type]events.Message{}
	for _, e := range eventstest.Chain("r1", 1, 0) {
		chain[e.Type] = eventstest.Encode(e)
	}
	for _, user := range users[2:] {
		s := events.Stages[slices.IndexFunc(events.Stages, func(s events.Stage) bool { return s.Name == user })]
		own := eventstest.Publishes(s)
		bus := login(user)
		// The needs of the stage.
		r, err := bus.Read(ctx, events.ReadConfig{Run: "r1"})
		if err != nil {
			t.Fatalf("%s: %v", user, err)
		}
		if m, _, err := r.Next(ctx); err != nil || m.ID != list[0].ID {
			t.Errorf("%s reads %s, %v", user, m.ID, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if s.Replicas == events.One {
			l, err := bus.Lease(ctx, events.LeaseConfig{Run: "r1", Name: user, Owner: "host:1", TTL: time.Minute})
			if err != nil {
				t.Fatalf("%s: %v", user, err)
			}
			if err := l.Close(); err != nil {
				t.Errorf("%s: %v", user, err)
			}
			leases["$KV.codea1-r1."+user] = true
		}
		if s.Kind == events.Worker {
			// The consumer gets an event that is there, of any type.
			c, err := bus.Consume(ctx, events.ConsumeConfig{Run: "r1", Name: user, Types: []events.Type{events.TypeProblemPosed}, AckWait: time.Minute, MaxInFlight: 8})
			if err != nil {
				t.Fatalf("%s: %v", user, err)
			}
			got, err := c.Fetch(ctx, 8, 0)
			if err != nil || len(got) != 1 {
				t.Fatalf("%s: %d deliveries, %v", user, len(got), err)
			}
			if err := got[0].DeadLetter(ctx, "a test"); err != nil {
				t.Errorf("%s: %v", user, err)
			}
			stored["codea1.r1.dead."+events.DeadLetterID(user, list[0].ID, 1)] = true
			for {
				lag, err := bus.Lag(ctx, "r1", user)
				if err != nil {
					t.Fatalf("%s: %v", user, err)
				}
				if lag == (events.Lag{}) { // the answer has arrived
					break
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}

		conn, refused := suspect(t, strings.Replace(url, "://", "://"+user+":p-"+user+"@", 1))
		own1 := ""
		var foreign []string
		for _, typ := range events.Types() {
			subject := "codea1.r1." + string(typ) + ".by-" + user
			if !slices.Contains(own, typ) {
				foreign = append(foreign, subject)
				continue
			}
			forged := nats.NewMsg(subject)
			posed := chain[events.TypeProblemPosed]
			posed.Headers("ce-", forged.Header.Set)
			if _, err := conn.RequestMsgWithContext(ctx, forged); err != nil {
				t.Errorf("%s cannot publish %s: %v", user, typ, err)
			}
			stored[subject], own1 = true, subject
		}
		for _, api := range []string{"$JS.API.", stageAPI + "."} {
			for _, request := range []string{
				"STREAM.DELETE.codea1-r1", "STREAM.PURGE.codea1-r1", "STREAM.MSG.DELETE.codea1-r1", "STREAM.MSG.GET.codea1-r1", "STREAM.RESTORE.x",
				"STREAM.SNAPSHOT.codea1-r1", "STREAM.DELETE.KV_codea1-r1", "STREAM.PURGE.KV_codea1-r1", "CONSUMER.DURABLE.CREATE.codea1-r1.x",
				"CONSUMER.CREATE.codea1-r1", "CONSUMER.PAUSE.codea1-r1.x", "CONSUMER.LIST.codea1-r1", "STREAM.LIST", "ACCOUNT.PURGE.codea1",
			} {
				foreign = append(foreign, api+request)
			}
			if user != events.StageRecorder {
				foreign = append(foreign, api+"STREAM.CREATE.x", api+"STREAM.UPDATE.codea1-r1", api+"STREAM.CREATE.KV_codea1-r1")
			}
			for _, w := range workers() {
				if w.Name != user {
					foreign = append(foreign, api+"CONSUMER.CREATE.codea1-r1."+w.Name, api+"CONSUMER.CREATE.codea1-r1."+w.Name+".x",
						api+"CONSUMER.DELETE.codea1-r1."+w.Name, api+"CONSUMER.MSG.NEXT.codea1-r1."+w.Name)
				}
			}
		}
		for _, other := range users {
			if other != user {
				foreign = append(foreign, "codea1.r1.dead."+other+".e.1", "codea1.r1.retry."+other+".e.1", "$JS.ACK.codea1-r1."+other+".1.1.1.1.1",
					"$KV.codea1-r1."+other, stageAPI+".$KV.codea1-r1."+other)
			}
		}
		for _, subject := range append(foreign, "$SYS.REQ.SERVER.PING", "x") {
			if err := conn.Publish(subject, nil); err != nil {
				t.Fatal(err)
			}
			refused(user + " publishes to " + subject)
		}

		// Answers of the server to subjects that the stage may not publish to.
		const at = "codea1.r1.policy.updated.forged-"
		request := func(subject, answer string, data []byte) {
			if err := conn.PublishRequest(subject, answer, data); err != nil {
				t.Fatal(err)
			}
		}
		request(stageAPI+".STREAM.INFO.codea1-r1", at+"1", nil)
		request(stageAPI+".CONSUMER.CREATE.codea1-r1.mine-"+user, at+"2", []byte("{}"))
		stages, err := jetstream.NewWithAPIPrefix(conn, stageAPI)
		if err != nil {
			t.Fatal(err)
		}
		if own1 != "" {
			request(own1, at+"3", []byte("again"))
			request(stageAPI+".DIRECT.GET.codea1-r1."+own1, at+"4", nil)
			request(stageAPI+".DIRECT.GET.codea1-r1."+own1, stageAPI+".STREAM.DELETE.codea1-r1", nil)
			request(stageAPI+".DIRECT.GET.codea1-r1."+own1, "$JS.API.STREAM.DELETE.codea1-r1", nil)
			if _, err := stages.CreateConsumer(ctx, "codea1-r1", jetstream.ConsumerConfig{Name: "pull-" + user, FilterSubject: own1}); err != nil {
				t.Errorf("%s: %v", user, err)
			}
			request(stageAPI+".CONSUMER.MSG.NEXT.codea1-r1.pull-"+user, at+"5", []byte("1"))
			for i, to := range []string{at + "6", "$JS.API.STREAM.DELETE.codea1-r1", "$JS.API.STREAM.PURGE.codea1-r1", "$KV.codea1-r1.forged"} {
				// The server may refuse the consumer, or lose its deliveries.
				_, _ = stages.CreatePushConsumer(ctx, "codea1-r1", jetstream.ConsumerConfig{
					Name: fmt.Sprintf("push-%s-%d", user, i), FilterSubject: own1, DeliverSubject: to,
				})
			}
		}
		if err := conn.FlushWithContext(ctx); err != nil {
			t.Fatal(err)
		}
	}

	// In the account of the stream, the server stores such an answer.
	const control = "codea1.r1.policy.updated.control"
	if err := operator.PublishRequest("$JS.API.STREAM.INFO.codea1-r1", control, nil); err != nil {
		t.Fatal(err)
	}
	stored[control] = true
	subjects := func(stream string) map[string]bool {
		s, err := js.Stream(ctx, stream)
		if err != nil {
			t.Fatal(err)
		}
		info, err := s.Info(ctx, jetstream.WithSubjectFilter(">"))
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for subject := range info.State.Subjects {
			found[subject] = true
		}
		return found
	}
	for !subjects("codea1-r1")[control] {
		time.Sleep(10 * time.Millisecond)
	}
	if diff := cmp.Diff(stored, subjects("codea1-r1")); diff != "" {
		t.Errorf("subjects of the events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(leases, subjects("KV_codea1-r1")); diff != "" {
		t.Errorf("subjects of the leases (-want +got):\n%s", diff)
	}
}
