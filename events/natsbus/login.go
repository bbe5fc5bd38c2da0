package natsbus

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"codea1/events/rundir"
)

// An embedded server has two logins. Their passwords are files of its store
// directory.
const (
	// PipelineUser may do everything that the stages of a run need. The in-process
	// connection and `codea1 stage` use it.
	PipelineUser = "codea1"
	// TapUser may subscribe to the events of the run and do nothing else.
	TapUser = "tap"
)

const (
	// tapConnections bounds the connections of TapUser: the server keeps up to
	// 64 MiB for a connection that does not read.
	tapConnections = 4
	// maxConnections and maxSubscriptions bound a local user that opens many. The
	// stages of a run need fewer.
	maxConnections   = 256
	maxSubscriptions = 1024
)

// PasswordFile returns the file with the password of a user of the embedded
// server on a store directory.
func PasswordFile(storeDir, user string) string { return filepath.Join(storeDir, user+".password") }

// password returns the password of a user. It makes a random one if there is no
// file, or if a crash left a short one.
func password(storeDir, user string) (string, error) {
	path := PasswordFile(storeDir, user)
	text, err := os.ReadFile(path)
	if err == nil && len(text) == len(rand.Text()) {
		return string(text), os.Chmod(path, 0o600) // a copy of the directory may have other modes
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	made := rand.Text()
	return made, rundir.WriteFile(path, []byte(made), rundir.SecretMode)
}

// gate lets a client in by its login. The server knows no other way in.
type gate struct {
	passwords map[string]string
	subject   string // that the tap may subscribe to; empty for no tap

	mu  sync.Mutex
	tap *natsserver.Account // nil before the server is up
}

var _ natsserver.Authentication = (*gate)(nil)

// newGate returns the gate of a server on a store directory.
func newGate(storeDir, run string) (*gate, error) {
	g := &gate{passwords: make(map[string]string)}
	users := []string{PipelineUser}
	if run != "" {
		if err := validNames(run); err != nil {
			return nil, err
		}
		g.subject = runSubjects(run)
		users = append(users, TapUser)
	}
	for _, user := range users {
		var err error
		if g.passwords[user], err = password(storeDir, user); err != nil {
			return nil, fmt.Errorf("nats: password of the embedded server: %w", err)
		}
	}
	return g, nil
}

// openTap makes the account of the tap. It gets the events from the account of
// the pipeline and shares nothing else with it, so that no subject, reply or
// JetStream request of a tap reaches the pipeline.
func (g *gate) openTap(s *natsserver.Server) error {
	if g.subject == "" {
		return nil
	}
	account, err := s.RegisterAccount(TapUser)
	if err == nil {
		err = s.GlobalAccount().AddStreamExport(g.subject, []*natsserver.Account{account})
	}
	if err == nil {
		err = account.AddStreamImport(s.GlobalAccount(), g.subject, "")
	}
	if err != nil {
		return fmt.Errorf("nats: tap of the embedded server: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tap = account
	return nil
}

// Check implements natsserver.Authentication.
func (g *gate) Check(c natsserver.ClientAuthentication) bool {
	login := c.GetOpts()
	want, ok := g.passwords[login.Username]
	if !ok || subtle.ConstantTimeCompare([]byte(login.Password), []byte(want)) != 1 {
		return false
	}
	if login.Username == PipelineUser {
		c.RegisterUser(&natsserver.User{Username: PipelineUser, Permissions: &natsserver.Permissions{
			Publish: &natsserver.SubjectPermission{Deny: destructive},
		}})
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.tap == nil || g.tap.NumLocalConnections() >= tapConnections {
		return false
	}
	c.RegisterUser(&natsserver.User{Username: TapUser, Account: g.tap, Permissions: &natsserver.Permissions{
		Publish:   &natsserver.SubjectPermission{Deny: []string{">"}},
		Subscribe: &natsserver.SubjectPermission{Allow: []string{g.subject}},
	}})
	return true
}

// destructive are the requests that delete or replace stored events. No part of
// a run makes one.
var destructive = []string{
	"$JS.API.STREAM.DELETE.>",
	"$JS.API.STREAM.PURGE.>",
	"$JS.API.STREAM.MSG.DELETE.>",
	"$JS.API.STREAM.RESTORE.>",
}
