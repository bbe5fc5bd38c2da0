package outbox_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimEnv); dir != "" {
		victim(dir) // this process is a writer that the test kills
		return
	}
	goleak.VerifyTestMain(m)
}
