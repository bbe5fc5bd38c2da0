package natsbus_test

import (
	"testing"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"codea1/events/bustest"
	"codea1/events/natsbus"
)

// A client that waits for its server does not wait when the server refuses it,
// or when its configuration is wrong.
func TestRefusalEndsTheWait(t *testing.T) {
	t.Parallel()
	_, _, tls := bustest.Certificate(t)
	guarded := startServer(t, &natsserver.Options{Authorization: "token"})
	encrypted := startServer(t, &natsserver.Options{TLSConfig: tls})
	for name, c := range map[string]natsbus.Config{
		"Port":        {URL: "nats://127.0.0.1:99999"},
		"Address":     {URL: "nats://u:p%zz@127.0.0.1:4222"},
		"NoToken":     {URL: guarded},
		"WrongToken":  {URL: guarded, Token: "other"},
		"Certificate": {URL: encrypted},
		"NoKeyFile":   {NKeyFile: "/does/not/exist"},
	} {
		t.Run(name, func(t *testing.T) {
			c.Wait = true
			ctx := bounded(t)
			if bus, err := natsbus.Connect(ctx, c); err == nil {
				bus.Close()
				t.Error("connected")
			} else if ctx.Err() != nil {
				t.Errorf("waited for a server that refuses: %v", err)
			}
		})
	}
}

// A request and an event that the permissions of a login forbid are errors that
// name the subject, and not an outage.
func TestForbidden(t *testing.T) {
	t.Parallel()
	forbid := func(name string, subjects ...string) *natsserver.User {
		return &natsserver.User{Username: name, Password: name, Permissions: &natsserver.Permissions{
			Publish: &natsserver.SubjectPermission{Deny: subjects},
		}}
	}
	url := startServer(t, &natsserver.Options{JetStream: true, StoreDir: t.TempDir(), Users: []*natsserver.User{
		{Username: "all", Password: "all"},
		forbid("none", "$JS.API.STREAM.CREATE.*"), forbid("poser", "codea1.*.problem.posed.*"),
	}})
	none := connectTo(t, natsbus.Config{URL: url, User: "none", Password: "none"})
	wantSentence(t, none.Publish(bounded(t), posed(1)...), "$JS.API.STREAM.CREATE.codea1-r1", "permit")
	if err := connectTo(t, natsbus.Config{URL: url, User: "all", Password: "all"}).Publish(bounded(t), posed(1)...); err != nil {
		t.Fatal(err)
	}
	poser := connectTo(t, natsbus.Config{URL: url, User: "poser", Password: "poser"})
	wantSentence(t, poser.Publish(bounded(t), posed(2)[1]), "codea1.r1.problem.posed.s000001-q0001", "permit")
}
