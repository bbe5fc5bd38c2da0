package dashboard

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"codea1/events"
	"codea1/events/natsbus/natstest"
)

// drawn counts the pixels of a chart in the colour of a line.
const drawn = `(() => {
	const canvas = document.querySelector('[data-chart=%q] canvas');
	const [r, g, b] = %s;
	const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
	let n = 0;
	for (let i = 0; i < data.length; i += 4) {
		if (data[i] === r && data[i+1] === g && data[i+2] === b && data[i+3] === 255) n++;
	}
	return n;
})()`

// stageRows returns the text of the page's table of stages, given the numbers of
// the stages with replicas.
func stageRows(numbers map[string]string) string {
	var b strings.Builder
	types := func(list []events.Type, ifEmpty string) {
		for i, t := range list {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(string(t))
		}
		if len(list) == 0 {
			b.WriteString(ifEmpty)
		}
	}
	for _, s := range events.Stages {
		b.WriteString(s.Name)
		types(s.Consumes, "all events")
		types(s.Makes, "–")
		b.WriteString(cmp.Or(numbers[s.Name], "––––"))
	}
	return b.String()
}

// TestPageFollowsARun opens the page in a real browser and publishes events of a
// run on a real bus.
func TestPageFollowsARun(t *testing.T) {
	browser := startChrome(t)
	bus := natstest.Bus(t)
	publish := func(es ...*events.Event) {
		t.Helper()
		if err := bus.Publish(t.Context(), encode(t, es...)...); err != nil {
			t.Fatal(err)
		}
	}
	f := NewFollower()
	follow(t, f, bus)
	server, stop := serve(t, f)

	browser.open(server.URL())
	browser.until(`document.getElementById('connection')?.className === 'live'`)
	browser.until(`document.getElementById('updates').textContent !== '0'`)
	if got := browser.text("progress_text"); got != "starting" {
		t.Errorf("before the first event the page says %q", got)
	}

	s := &script{at: noon}
	publish(s.started(1, 9))
	for step := 1; step <= 5; step++ {
		s.at = s.at.Add(10 * time.Second)
		publish(
			s.rewarded(step, 0, 1, 0.2*float64(step), 0.3, events.BookDelta{Call: fmt.Sprintf("f(%d)", step), Expected: "1", Change: 1}),
			s.updated(events.RoleCode, step), s.updated(events.RoleTest, step), s.beat("execution-0", step, int64(step), 4))
	}
	publish(
		s.scored("before", 0, 0, 1, events.EvalScored{Correct: []bool{true, false, false, false}}),
		s.dropped(events.PurposeTrain, "s000006-q0000", 6, 0, 1, events.DropTooLarge))

	// The page shows the numbers of the state without a reload.
	browser.until(`document.getElementById('dropped').textContent === '1'`)
	for id, want := range map[string]string{
		"run": "r1", "progress_text": "step 6 of 9", "left": "40s left",
		"reward_code": "0.500", "reward_test": "0.300", "pass_new": "75.0%", "pass_hist": "50.0%", "book_size": "5", "rewarded": "5",
	} {
		if got := browser.text(id); got != want {
			t.Errorf("%s: the page says %q, want %q", id, got, want)
		}
	}
	for table, want := range map[string]string{
		"evals": "step 01/1" + "25.0%––––", "stages": stageRows(map[string]string{events.StageExecution: "1420.1"}),
		"replicas": "execution-0420.15050.0%0s ago",
		"events":   "eval.scored1group.dropped1group.rewarded5policy.updated10run.started1stage.heartbeat5",
	} {
		if got := browser.eval(fmt.Sprintf("document.querySelector('#%s tbody').textContent", table)); got != want {
			t.Errorf("table %s: the page says %q, want %q", table, got, want)
		}
	}

	// Every chart has drawn its five steps.
	blue := "[0x25, 0x63, 0xeb]"
	for chart := range map[string]bool{"reward": true, "pass": true, "tests": true, "book": true} {
		if rows := browser.eval(fmt.Sprintf("document.querySelector('[data-chart=%s]').dataset.rows", chart)); rows != "6" {
			t.Errorf("chart %s has %v rows, want 5 and the one of the dropped group", chart, rows)
		}
		if n, ok := browser.eval(fmt.Sprintf(drawn, chart, blue)).(float64); !ok || n < 100 {
			t.Errorf("chart %s: %v pixels have the line's colour", chart, n)
		}
	}

	// HTML in the texts of a run stays text.
	evil := s.dropped(events.PurposeTrain, "s000007-q0000", 7, 0, 1, events.DropTooLarge)
	evil.Payload.(*events.GroupDropped).Detail = `<img src=x onerror="document.title='evil'">`
	publish(evil)
	browser.until(`document.querySelector('#drops td.long').textContent.startsWith('<img src=x')`)

	// The dark colours also apply to the charts.
	browser.prefer("dark")
	browser.until(`getComputedStyle(document.body).backgroundColor === 'rgb(16, 19, 23)'`)
	browser.until(fmt.Sprintf(drawn, "reward", "[0x60, 0xa5, 0xfa]") + " > 100")

	problems, _ := browser.seen()
	for _, p := range problems {
		t.Errorf("the page had a problem: %s", p)
	}

	stop()
	browser.until(`document.getElementById('connection').className === 'lost'`)
}
