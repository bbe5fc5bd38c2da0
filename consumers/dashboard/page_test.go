package dashboard

import (
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
	publish(s.whole(7, hostileText)...)

	// The page shows the numbers of the state without a reload.
	browser.until(`document.getElementById('dropped').textContent === '1' && document.getElementById('rewarded').textContent === '6'`)
	for id, want := range map[string]string{
		"run": "r1", "progress_text": "step 6 of 9", "left": "40s left",
		"reward_code": "0.750", "reward_test": "0.000", "pass_new": "75.0%", "pass_hist": "50.0%", "book_size": "6", "rewarded": "6",
	} {
		if got := browser.text(id); got != want {
			t.Errorf("%s: the page says %q, want %q", id, got, want)
		}
	}
	shows := func(selector, want string) {
		t.Helper()
		if got := browser.eval(fmt.Sprintf(`(document.querySelector(%q)?.textContent ?? "nothing")`, selector)); got != want {
			t.Errorf("%s: the page says %q, want %q", selector, got, want)
		}
	}
	shows("#evals tbody", "step 01/1"+"25.0%––––")
	shows("#policies tbody tr", "code5"+"0.1250.0011.50.0%0.51.0e-6")

	// Every chart has drawn its five steps.
	blue := "[0x25, 0x63, 0xeb]"
	for chart := range map[string]bool{"reward": true, "pass": true, "tests": true, "book": true} {
		if rows := browser.eval(fmt.Sprintf("document.querySelector('[data-chart=%s]').dataset.rows", chart)); rows != "7" {
			t.Errorf("chart %s has %v rows, want 6 and the one of the dropped group", chart, rows)
		}
		if n, ok := browser.eval(fmt.Sprintf(drawn, chart, blue)).(float64); !ok || n < 100 {
			t.Errorf("chart %s: %v pixels have the line's colour", chart, n)
		}
	}

	// Each view has a URL. The texts of a run stay texts in all of them.
	view := func(hash, until string) {
		t.Helper()
		browser.eval(fmt.Sprintf("location.hash = %q", hash))
		browser.until(until)
	}
	view("#/pipeline", `document.querySelectorAll('.stage').length === 10`)
	shows("[data-stage=execution] dl", "per s0.1handled5lag4in flight2errors0dropped1")
	shows("[data-stage=trainer-code] dl div:last-child", "version5")
	shows("#replicas tbody", "execution-0420.15050.0%0s ago")
	if text, _ := browser.text("binding_text").(string); !strings.Contains(text, "of step 5") {
		t.Errorf("the page says %q about the last step", text)
	}
	view("#/book?q=DOUBLE", `document.querySelectorAll('#book_tests .test').length === 1`)
	shows("#book_tests .changes", "step 7: +1 to 1, by s000007-q0000, answer 2 failed it")
	view("#/group", `document.querySelectorAll('#group_body tbody tr').length === 7`)
	view("#/group/s000007-q0000", `document.querySelectorAll('.answer').length === 2`)
	shows(".question", "Double x ⟨U+202E⟩<img src=x onerror=\"document.title='evil'\">⟨U+001B⟩[31m")
	shows(".matrix tbody tr:nth-child(2)", "20.50✓✗")
	if n := browser.eval(`document.querySelectorAll('main img, main script, main iframe').length`); n != 0.0 {
		t.Errorf("%v elements came from the texts of the run", n)
	}
	if n, _ := browser.eval(`document.querySelector('#group_body').textContent.length`).(float64); n > 3*maxTextBytes {
		t.Errorf("a line of 256 KiB became %v characters of the page", n)
	}
	view("#/run", `document.querySelector('#events tbody').rows.length === 10`)
	evil := s.dropped(events.PurposeTrain, "s000008-q0000", 8, 0, 1, events.DropTooLarge)
	evil.Payload.(*events.GroupDropped).Detail = hostileText
	publish(evil)
	browser.until(`document.querySelector('#drops td.long').textContent.startsWith('\u27e8U+202E\u27e9<img src=x')`)
	view("#/training", `!document.getElementById('training').hidden`)

	// Another recipe has curves beside those of the run, and its stage is shown.
	if hidden := browser.eval(`document.querySelector('[data-chart=shadow_code]').parentElement.hidden`); hidden != true {
		t.Error("a run without other recipes has their charts")
	}
	publish(s.shadowed(2, 1, true, 1, "utrl"))
	browser.until(`!document.querySelector('[data-chart=shadow_code]').parentElement.hidden`)
	browser.until(`['shadow_code', 'shadow_test', 'shadow_differs'].every((c) => document.querySelector('[data-chart=' + c + '] .u-legend')?.textContent.includes('utrl'))`)
	view("#/pipeline", `document.querySelectorAll('.stage').length === 11`)
	view("#/training", `!document.getElementById('training').hidden`)

	// The dark colours also apply to the charts.
	browser.prefer("dark")
	browser.until(`getComputedStyle(document.body).backgroundColor === 'rgb(15, 18, 21)'`)
	browser.until(fmt.Sprintf(drawn, "reward", "[0x60, 0xa5, 0xfa]") + " > 100")

	problems, _ := browser.seen()
	for _, p := range problems {
		t.Errorf("the page had a problem: %s", p)
	}

	// The end is said, and the page stays when the process has ended.
	publish(s.finished(5, events.RunStopped))
	browser.until(`document.getElementById('end').textContent.includes('Last event: run.finished')`)
	stop()
	browser.until(`document.getElementById('connection').className === 'ended'`)
}
