package dashboard

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
)

// chrome is a headless Chromium with one page. The test uses the Chrome DevTools
// Protocol on pipes: JSON messages that end with a NUL byte, written to its
// descriptor 3 and read from its descriptor 4.
type chrome struct {
	t       *testing.T
	to      *os.File
	session string

	mu       sync.Mutex
	next     int
	waiting  map[int]chan reply
	problems []string // exceptions and errors of the page
	requests []string // URLs that the page requested
}

type reply struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// startChrome starts a browser that ends with the test. Without Chromium the
// test is skipped, but not in continuous integration.
func startChrome(t *testing.T) *chrome {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("Chromium is not installed; the page must be tested here")
		}
		t.Skip("Chromium is not installed")
	}
	theirIn, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*longEnough)
	command := exec.CommandContext(ctx, path,
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
		"--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--user-data-dir="+t.TempDir(), "--window-size=1280,1600", "--remote-debugging-pipe")
	command.ExtraFiles = []*os.File{theirIn, theirOut}
	var noise bytes.Buffer
	command.Stderr = &noise
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()

	c := &chrome{t: t, to: to, waiting: map[int]chan reply{}}
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		c.read(from)
	}()
	t.Cleanup(func() {
		c.call("Browser.close", nil, nil)
		if err := command.Wait(); err != nil && t.Failed() {
			t.Logf("chromium: %v\n%s", err, noise.Bytes())
		}
		<-reading
		cancel()
		to.Close()
		from.Close()
	})

	var target struct {
		TargetID string `json:"targetId"`
	}
	c.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	c.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	c.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		c.call(domain+".enable", nil, nil)
	}
	return c
}

func (c *chrome) read(from *os.File) {
	messages := bufio.NewReader(from)
	for {
		data, err := messages.ReadBytes(0)
		if err != nil {
			c.mu.Lock()
			for id, w := range c.waiting {
				close(w)
				delete(c.waiting, id)
			}
			c.waiting = nil
			c.mu.Unlock()
			return
		}
		var m struct {
			ID     int             `json:"id"`
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
			reply
		}
		if err := json.Unmarshal(bytes.TrimRight(data, "\x00"), &m); err != nil {
			continue
		}
		c.mu.Lock()
		switch m.Method {
		case "Runtime.exceptionThrown":
			c.problems = append(c.problems, string(m.Params))
		case "Network.requestWillBeSent":
			var p struct{ Request struct{ URL string } }
			_ = json.Unmarshal(m.Params, &p) // an unreadable request counts too
			c.requests = append(c.requests, p.Request.URL)
		case "Log.entryAdded":
			var p struct{ Entry struct{ Level string } }
			if err := json.Unmarshal(m.Params, &p); err != nil || p.Entry.Level == "error" {
				c.problems = append(c.problems, string(m.Params))
			}
		}
		if w, ok := c.waiting[m.ID]; ok {
			w <- m.reply
			delete(c.waiting, m.ID)
		}
		c.mu.Unlock()
	}
}

// call sends one command and decodes its result into result.
func (c *chrome) call(method string, params map[string]any, result any) {
	c.t.Helper()
	c.mu.Lock()
	if c.waiting == nil {
		c.mu.Unlock()
		c.t.Errorf("%s: chromium has ended", method)
		return
	}
	c.next++
	id := c.next
	answer := make(chan reply, 1)
	c.waiting[id] = answer
	c.mu.Unlock()

	message := map[string]any{"id": id, "method": method}
	if params != nil {
		message["params"] = params
	}
	if c.session != "" {
		message["sessionId"] = c.session
	}
	data, err := json.Marshal(message)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.to.Write(append(data, 0)); err != nil {
		c.t.Errorf("%s: %v", method, err)
		return
	}
	r, ok := <-answer
	switch {
	case !ok:
		if method != "Browser.close" {
			c.t.Fatalf("%s: chromium has ended", method)
		}
	case r.Error != nil:
		c.t.Errorf("%s: %s", method, r.Error.Message)
	case result != nil:
		if err := json.Unmarshal(r.Result, result); err != nil {
			c.t.Fatalf("%s: %v", method, err)
		}
	}
}

// eval returns the value of a JavaScript expression in the page.
func (c *chrome) eval(expression string) any {
	c.t.Helper()
	var out struct {
		Result struct {
			Value any `json:"value"`
		} `json:"result"`
		ExceptionDetails json.RawMessage `json:"exceptionDetails"`
	}
	c.call("Runtime.evaluate", map[string]any{
		"expression": expression, "awaitPromise": true, "returnByValue": true,
	}, &out)
	if out.ExceptionDetails != nil {
		c.t.Fatalf("%s: %s", expression, out.ExceptionDetails)
	}
	return out.Result.Value
}

// until waits for a JavaScript condition to hold in the page.
func (c *chrome) until(condition string) {
	c.t.Helper()
	held := c.eval(fmt.Sprintf(`new Promise((done) => {
		const started = Date.now();
		const timer = setInterval(() => {
			const held = Boolean(%s);
			if (!held && Date.now() - started < %d) return;
			clearInterval(timer);
			done(held);
		}, 20);
	})`, condition, longEnough.Milliseconds()))
	if held != true {
		c.t.Fatalf("the page never came to %s; it shows:\n%v", condition, c.eval("document.body.innerText"))
	}
}

// seen returns the errors and the requests of the page.
func (c *chrome) seen() (problems, requests []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.problems), slices.Clone(c.requests)
}

// prefer sets the colour scheme of the page: light or dark.
func (c *chrome) prefer(scheme string) {
	c.t.Helper()
	c.call("Emulation.setEmulatedMedia", map[string]any{
		"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}},
	}, nil)
}

func (c *chrome) open(url string) {
	c.t.Helper()
	c.call("Page.navigate", map[string]any{"url": url}, nil)
}

func (c *chrome) text(id string) any {
	c.t.Helper()
	return c.eval(fmt.Sprintf("document.getElementById(%q).textContent", id))
}
