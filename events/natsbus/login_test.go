package natsbus_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"codea1/events"
	"codea1/events/eventstest"
	"codea1/events/natsbus"
)

// guarded starts the embedded server of run r1 with one stored event.
func guarded(t *testing.T) (*natsbus.Server, *natsbus.Bus) {
	t.Helper()
	s, err := natsbus.StartServer(natsbus.ServerConfig{StoreDir: t.TempDir(), Run: "r1", SyncInterval: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	bus := connectTo(t, natsbus.Config{Server: s})
	if err := bus.Publish(bounded(t), posed(1)...); err != nil {
		t.Fatal(err)
	}
	return s, bus
}

// untouched checks that the server stores the pipeline's messages and
// nothing else.
func untouched(t *testing.T, s *natsbus.Server, messages uint64) {
	t.Helper()
	_, js := raw(t, s.URL(natsbus.PipelineUser))
	var names []string
	for info := range js.ListStreams(bounded(t)).Info() {
		names = append(names, fmt.Sprintf("%s %d %d", info.Config.Name, info.State.Msgs, info.State.Consumers))
	}
	if want := fmt.Sprintf("codea1-r1 %d 0", messages); len(names) != 1 || names[0] != want {
		t.Errorf("streams with their messages and consumers: %q, want %q", names, want)
	}
}

// suspect returns a client, and a function that waits until the server has
// refused all actions of the client.
func suspect(t *testing.T, url string) (*nats.Conn, func(what string)) {
	t.Helper()
	refusals := make(chan error, 1)
	conn, err := nats.Connect(url, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refusals <- err }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	ctx := bounded(t)
	return conn, func(what string) {
		t.Helper()
		select {
		case err := <-refusals:
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s: %v, want %v", what, err, nats.ErrPermissionViolation)
			}
		case <-ctx.Done():
			t.Fatalf("%s: not refused", what)
		}
	}
}

// hostile are the subjects that no client but the pipeline may publish to.
func hostile() []string {
	subjects := []string{
		"codea1.r1.dead.execution.e.1", "codea1.r1.retry.execution.e.1", "codea1.r1", "codea1.other.problem.posed.g", "x",
		"$KV.codea1-r1.recorder", "$JS.ACK.codea1-r1.execution.1.1.1.1.1", "_INBOX.x", "$SYS.REQ.SERVER.PING", "$SYS.REQ.USER.INFO",
	}
	for _, typ := range events.Types() {
		subjects = append(subjects, "codea1.r1."+string(typ)+".s000002-q0000")
	}
	for _, request := range []string{
		"INFO", "STREAM.CREATE.x", "STREAM.UPDATE.codea1-r1", "STREAM.DELETE.codea1-r1", "STREAM.PURGE.codea1-r1", "STREAM.MSG.DELETE.codea1-r1",
		"STREAM.MSG.GET.codea1-r1", "STREAM.SNAPSHOT.codea1-r1", "STREAM.RESTORE.codea1-r1", "STREAM.LIST", "STREAM.NAMES", "STREAM.INFO.codea1-r1",
		"STREAM.PEER.REMOVE.codea1-r1", "STREAM.LEADER.STEPDOWN.codea1-r1", "META.LEADER.STEPDOWN", "ACCOUNT.PURGE.$G", "SERVER.REMOVE",
		"DIRECT.GET.codea1-r1", "CONSUMER.CREATE.codea1-r1", "CONSUMER.CREATE.codea1-r1.c", "CONSUMER.DURABLE.CREATE.codea1-r1.c",
		"CONSUMER.DELETE.codea1-r1.execution", "CONSUMER.MSG.NEXT.codea1-r1.execution", "CONSUMER.LIST.codea1-r1", "CONSUMER.PAUSE.codea1-r1.execution",
	} {
		subjects = append(subjects, "$JS.API."+request)
	}
	return subjects
}

// Without the login of the server a client can do nothing.
func TestNoLogin(t *testing.T) {
	t.Parallel()
	s, _ := guarded(t)
	other, _ := guarded(t)
	foreign, err := url.Parse(other.URL(natsbus.PipelineUser))
	if err != nil {
		t.Fatal(err)
	}
	tap, err := url.Parse(s.URL(natsbus.TapUser))
	if err != nil {
		t.Fatal(err)
	}
	tapPassword, _ := tap.User.Password()
	foreignPassword, _ := foreign.User.Password()
	for name, option := range map[string]nats.Option{
		"None":              nats.Name("n"),
		"EmptyPassword":     nats.UserInfo(natsbus.PipelineUser, ""),
		"EmptyTap":          nats.UserInfo(natsbus.TapUser, ""),
		"NoUser":            nats.UserInfo("", tapPassword),
		"UnknownUser":       nats.UserInfo("admin", "admin"),
		"PasswordOfTheTap":  nats.UserInfo(natsbus.PipelineUser, tapPassword),
		"PasswordOfAnother": nats.UserInfo(natsbus.PipelineUser, foreignPassword),
		"SystemAccount":     nats.UserInfo("sys", "sys"),
		"Token":             nats.Token(tapPassword),
	} {
		conn, err := nats.Connect(s.URL(""), option)
		if !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: %v, want %v", name, err, nats.ErrAuthorization)
		}
		if conn != nil {
			conn.Close()
		}
	}
	// The protocol itself: operations before and in place of the login.
	at, err := url.Parse(s.URL(""))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"PUB codea1.r1.policy.updated.x 2\r\nhi\r\n",
		"SUB > 1\r\n",
		"CONNECT {}\r\nPUB codea1.r1.policy.updated.x 2\r\nhi\r\nSUB > 1\r\nPING\r\n",
		"CONNECT {\"user\":\"codea1\"}\r\nPUB $JS.API.STREAM.DELETE.codea1-r1 0\r\n\r\n",
		"CONNECT {\"verbose\":true,\"account\":\"$G\",\"new_account\":true}\r\nSUB > 1\r\n",
		"PUB x " + strings.Repeat("9", 30) + "\r\n",
		strings.Repeat("CONNECT ", 4096) + "\r\n",
		"\x00\xff\x00\xff\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", at.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(text)) // the server may have closed the connection
		answer := new(bytes.Buffer)
		if _, err := answer.ReadFrom(bufio.NewReader(conn)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%.40q: the connection stays open", text)
		}
		if strings.Contains(answer.String(), "MSG") || strings.Contains(answer.String(), "+OK") {
			t.Errorf("%.40q: answered %q", text, answer)
		}
	}
	untouched(t, s, 1)
}

// The login of the tap reads the events of the run and does nothing else.
func TestTapReadsOnly(t *testing.T) {
	t.Parallel()
	s, bus := guarded(t)
	ctx := bounded(t)
	tap, refused := suspect(t, s.URL(natsbus.TapUser))
	for _, subject := range hostile() {
		if err := tap.PublishMsg(&nats.Msg{Subject: subject, Reply: "codea1.r1.policy.updated.s000002-code"}); err != nil {
			t.Fatal(err)
		}
		refused("publish to " + subject)
	}
	for _, subject := range []string{
		">", "*.>", "codea1.>", "codea1.*.>", "codea1.other.>", "_INBOX.>", "$SYS.>", "$JS.>", "$JS.EVENT.ADVISORY.>", "$KV.>", "$G.>", "_R_.>", "$NRG.>",
	} {
		sub, err := tap.Subscribe(subject, func(m *nats.Msg) { t.Errorf("subject %s came to %s", m.Subject, subject) })
		if err != nil {
			t.Fatal(err)
		}
		refused("subscribe to " + subject)
		_ = sub.Unsubscribe()
	}
	seen, err := tap.SubscribeSync("codea1.r1.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := tap.FlushWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	list := posed(2)
	if err := bus.Publish(ctx, list[1]); err != nil {
		t.Fatal(err)
	}
	m, err := seen.NextMsgWithContext(ctx)
	if err != nil || m.Header.Get("ce-id") != list[1].ID {
		t.Errorf("the tap reads %v, %v", m, err)
	}
	untouched(t, s, 2)

	// A tap cannot take the connections of the pipeline.
	var taps []*nats.Conn
	for len(taps) < 64 {
		another, err := nats.Connect(s.URL(natsbus.TapUser))
		if err != nil {
			break
		}
		defer another.Close()
		taps = append(taps, another)
	}
	if len(taps) > 8 {
		t.Errorf("%d taps are connected at a time", len(taps))
	}
	if err := connectTo(t, natsbus.Config{URL: s.URL(natsbus.PipelineUser)}).Publish(ctx, list...); err != nil {
		t.Error(err)
	}
}

// Not even the pipeline's login deletes events.
func TestPipelineDeletesNothing(t *testing.T) {
	t.Parallel()
	s, _ := guarded(t)
	conn, refused := suspect(t, s.URL(natsbus.PipelineUser))
	for _, request := range []string{"DELETE.codea1-r1", "PURGE.codea1-r1", "MSG.DELETE.codea1-r1", "RESTORE.codea1-r1"} {
		if err := conn.PublishRequest("$JS.API.STREAM."+request, "_INBOX.x", nil); err != nil {
			t.Fatal(err)
		}
		refused(request)
	}
	untouched(t, s, 1)
}

// A tap that does not read loses its connection, and the run does not wait for
// it.
func TestTapThatDoesNotRead(t *testing.T) {
	if os.Getenv("CODEA1_TEST_THOROUGH") != "1" {
		t.Skip("writes 160 MiB")
	}
	t.Parallel()
	s, bus := guarded(t)
	ctx := bounded(t)
	conn, reader := silentTap(t, s)
	const messages = 160
	for i := range messages {
		m := eventstest.Encode(eventstest.Posed("r1", 2, i))
		m.Encoding, m.Data = events.EncodingNone, make([]byte, 1<<20)
		if err := bus.Publish(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	untouched(t, s, 1+messages)
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, reader); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection stays open")
	}
}

// silentTap connects as a tap that subscribes to all events of the run and reads none.
func silentTap(t testing.TB, s *natsbus.Server) (net.Conn, *bufio.Reader) {
	t.Helper()
	u, err := url.Parse(s.URL(natsbus.TapUser))
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "CONNECT {\"user\":%q,\"pass\":%q,\"verbose\":true,\"headers\":true}\r\nSUB codea1.r1.> 1\r\nPING\r\n", natsbus.TapUser, password); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	for line := ""; line != "PONG\r\n"; {
		if line, err = reader.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	return conn, reader
}

// The passwords are random, stay the same for a store, and are for its owner
// only.
func TestPasswordFiles(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "nats")
	if err := os.Mkdir(store, 0o755); err != nil { // by an earlier version
		t.Fatal(err)
	}
	start := func() map[string]string {
		s, err := natsbus.StartServer(natsbus.ServerConfig{StoreDir: store, Run: "r1"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Shutdown()
		passwords := map[string]string{}
		for _, user := range []string{natsbus.PipelineUser, natsbus.TapUser} {
			u, err := url.Parse(s.URL(user))
			if err != nil {
				t.Fatal(err)
			}
			passwords[user], _ = u.User.Password()
			stored, err := os.ReadFile(natsbus.PasswordFile(store, user))
			if err != nil || string(stored) != passwords[user] || len(stored) < 24 {
				t.Errorf("the password %q of %s is %q in its file: %v", passwords[user], user, stored, err)
			}
			info, err := os.Stat(natsbus.PasswordFile(store, user))
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
		}
		if info, err := os.Stat(store); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		if passwords[natsbus.PipelineUser] == passwords[natsbus.TapUser] {
			t.Error("both users have one password")
		}
		return passwords
	}
	first := start()
	if err := os.Chmod(natsbus.PasswordFile(store, natsbus.TapUser), 0o644); err != nil {
		t.Fatal(err)
	}
	second := start()
	if second[natsbus.TapUser] != first[natsbus.TapUser] || second[natsbus.PipelineUser] != first[natsbus.PipelineUser] {
		t.Error("a restart changes the passwords")
	}
	if err := os.Truncate(natsbus.PasswordFile(store, natsbus.PipelineUser), 3); err != nil {
		t.Fatal(err)
	}
	if third := start(); third[natsbus.PipelineUser] == first[natsbus.PipelineUser] || third[natsbus.TapUser] != first[natsbus.TapUser] {
		t.Error("a short password file is used, or another one is replaced")
	}
}
