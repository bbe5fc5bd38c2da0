package dashboard_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"codea1/consumers/dashboard"
	"codea1/events"
)

// At the end of a run, its table is printed and its report saved.
func ExampleSaveReport() {
	dir, err := os.MkdirTemp("", "run-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	// A Follower applies the events of a run as they come; here is the first.
	state := dashboard.NewState()
	state.Apply(events.New("r1", "run", "main", time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), &events.RunStarted{Attempt: 1, Steps: 9}))

	path := filepath.Join(dir, "report.html")
	fmt.Print(dashboard.Table(state, "runs/r1"))
	err = dashboard.SaveReport(path, state)
	page, _ := os.ReadFile(path)
	fmt.Println(err, strings.Contains(string(page), "Run r1: 0 of 9 steps"))
	// Output:
	// Run r1: 0 of 9 steps
	//
	// Mistake Book                0 tests (0 entered, 0 left)
	// Events                      1
	// Groups rewarded             0
	// Groups dropped              0
	// Run directory               runs/r1
	// <nil> true
}
