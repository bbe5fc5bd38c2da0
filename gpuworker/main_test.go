package gpuworker_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(victimEnv); role != "" {
		victim(role) // this process is a trainer that kills itself
		return
	}
	goleak.VerifyTestMain(m)
}
