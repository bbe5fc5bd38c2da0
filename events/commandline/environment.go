package commandline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// otherVariables are the environment variables of this program that set no flag.
var otherVariables = []string{
	"CODEA1_KERNEL", // chooses the kernels of the embedded engine

	// These are variables of the tests.
	"CODEA1_BENCH_EVENTS", "CODEA1_BUSTEST_OWNER", "CODEA1_CAMPAIGN_JOBS", "CODEA1_CHAOS_FAULTS", "CODEA1_KAFKA", "CODEA1_KAFKA_PIDFILE", "CODEA1_KAFKA_SASL",
	"CODEA1_KAFKABUS_MEMBER", "CODEA1_KERNEL_TEST", "CODEA1_KILLS", "CODEA1_LINK_FAULTS", "CODEA1_OUTAGES", "CODEA1_OUTBOX_VICTIM", "CODEA1_SANDBOXFUSION",
	"CODEA1_SANDBOXFUSION_PYTHON", "CODEA1_SERVER_STORE", "CODEA1_TEST_COSMICRAY_PYTHON", "CODEA1_TEST_EVALPLUS_PYTHON", "CODEA1_TEST_FILL_DIR", "CODEA1_TEST_HOLD_POOL", "CODEA1_TEST_S3_AGE", "CODEA1_TEST_S3_FILE", "CODEA1_TEST_SERVER",
	"CODEA1_TEST_BANDIT_PYTHON", "CODEA1_TEST_THOROUGH", "CODEA1_TEST_TORCH_CHILD", "CODEA1_TEST_TORCH_PYTHON", "CODEA1_TEST_TRACK_PYTHON", "CODEA1_TEST_WRITER_DIR", "CODEA1_TRAINER_VICTIM", "CODEA1_TRAINER_VICTIM_DIR",
	"CODEA1_TRAINER_VICTIM_MOMENT", "CODEA1_TRAINER_VICTIM_START", "CODEA1_TRAINER_VICTIM_STORE", "CODEA1_TRAINER_VICTIM_URL",
}

// CheckEnvironment returns an error about the first variable in environ that begins
// with the prefix of this program and that no command reads.
func CheckEnvironment(root *kong.Node, prefix string, environ []string) error {
	var known []string
	_ = kong.Visit(root, func(v kong.Visitable, next kong.Next) error {
		if flag, ok := v.(*kong.Flag); ok {
			known = append(known, flag.Envs...)
		}
		return next(nil)
	})
	for _, assignment := range environ {
		name, _, _ := strings.Cut(assignment, "=")
		if !strings.HasPrefix(name, prefix) || slices.Contains(known, name) || slices.Contains(otherVariables, name) {
			continue
		}
		nearest := slices.MinFunc(known, func(a, b string) int { return edits(name, a) - edits(name, b) })
		return fmt.Errorf("environment variable %s sets nothing; the nearest name is %s: correct it or unset it", name, nearest)
	}
	return nil
}

// edits returns the number of letters to insert, delete or replace that make a
// into b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
