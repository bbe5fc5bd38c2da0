package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"codea1/events"
)

// Bounds of the answers of the interface.
const (
	mostTests     = 50
	mostGroups    = 100
	maxReads      = 2 // groups, and other runs, that are read at the same time
	maxQueryBytes = 1 << 10
	overlayTime   = time.Minute // to read another run
)

// OtherRuns has the other runs, for comparison with the run of the page.
type OtherRuns interface {
	// Runs returns the names of the runs, newest first.
	Runs() ([]string, error)
	// Open returns the events of a run; its reader returns io.EOF at their end.
	Open(ctx context.Context, run string) (bus Bus, closeBus func() error, err error)
}

// deadLetters is the part of a bus with dead letters. A log has none.
type deadLetters interface {
	DeadLetters(ctx context.Context, run string) ([]events.DeadLetter, error)
}

// queries answers the questions of the page that the snapshot does not answer.
type queries struct {
	follower *Follower
	others   OtherRuns     // nil without other runs
	reads    chan struct{} // holds a value per reader of a bus
}

func (q *queries) register(mux *http.ServeMux) {
	for path, answer := range map[string]func(*http.Request) (any, error){
		"GET /api/book": q.book, "GET /api/groups": q.groups, "GET /api/group": q.bounded(q.group),
		"GET /api/deadletters": q.bounded(q.deadLetters), "GET /api/runs": q.runs, "GET /api/run": q.bounded(q.run),
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { answerWith(w, r, answer) })
	}
}

// errQuery is returned for a parameter with a value that no page sends.
var errQuery = errors.New("a parameter is malformed")

func answerWith(w http.ResponseWriter, r *http.Request, answer func(*http.Request) (any, error)) {
	status := http.StatusInternalServerError
	var data []byte
	err := errQuery
	if len(r.URL.RawQuery) <= maxQueryBytes {
		var value any
		if value, err = answer(r); err == nil {
			data, err = json.Marshal(value)
		}
	}
	switch {
	case err == nil:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(data) // the client may have disconnected
		return
	case errors.Is(err, errQuery):
		status = http.StatusBadRequest
	case errors.Is(err, ErrNoGroup):
		status = http.StatusNotFound
	}
	http.Error(w, err.Error(), status)
}

// bounded lets maxReads requests at a time read a bus, so that pages cannot slow the
// pipeline.
func (q *queries) bounded(answer func(*http.Request) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		select {
		case q.reads <- struct{}{}:
			defer func() { <-q.reads }()
			return answer(r)
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

func (q *queries) book(r *http.Request) (view any, err error) {
	f := r.URL.Query()
	q.follower.View(func(s *State) {
		view = s.Book.find(bookQuery{text: f.Get("q"), problem: f.Get("problem"), sort: f.Get("sort"), most: mostTests})
	})
	return view, nil
}

func (q *queries) groups(r *http.Request) (view any, err error) {
	f, step := r.URL.Query(), 0
	if text := f.Get("step"); text != "" {
		if step, err = strconv.Atoi(text); err != nil {
			return nil, fmt.Errorf("step %q: %w", text, errQuery)
		}
	}
	q.follower.View(func(s *State) { view = s.groups.find(step, f.Get("problem"), mostGroups) })
	return view, nil
}

func (q *queries) group(r *http.Request) (any, error) {
	return q.follower.Group(r.Context(), r.URL.Query().Get("name"))
}

// deadLetter is a dead letter as the page shows it.
type deadLetter struct {
	Stage      string      `json:"stage"`
	Type       events.Type `json:"type"`
	Group      string      `json:"group"`
	Deliveries int         `json:"deliveries"`
	Reason     string      `json:"reason"`
	Time       time.Time   `json:"at"`
}

func (q *queries) deadLetters(r *http.Request) (any, error) {
	q.follower.mu.RLock()
	bus, run := q.follower.bus, q.follower.state.Run
	q.follower.mu.RUnlock()
	from, ok := bus.(deadLetters)
	if !ok || run == "" {
		return object{"known": false, "count": 0, "letters": []deadLetter{}}, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), groupTime)
	defer cancel()
	all, err := from.DeadLetters(ctx, run)
	if err != nil {
		return nil, err
	}
	letters := []deadLetter{}
	for _, d := range all[max(0, len(all)-mostTests):] {
		letters = append(letters, deadLetter{d.Name, d.Type, d.Group, d.Deliveries, brief(d.Reason), d.Time})
	}
	return object{"known": true, "count": len(all), "letters": letters}, nil
}

func (q *queries) runs(*http.Request) (any, error) {
	names := []string{}
	if q.others != nil {
		all, err := q.others.Runs()
		if err != nil {
			return nil, err
		}
		var own string
		q.follower.View(func(s *State) { own = s.Run })
		for _, name := range all {
			if name != own && len(names) < mostGroups {
				names = append(names, name)
			}
		}
	}
	return object{"runs": names}, nil
}

// overlayTypes are the types that the series of a run need. The large ones, which
// have only the counts of wrong and discarded tests besides, are not read.
var overlayTypes = []events.Type{
	events.TypeRunStarted, events.TypeRunFinished, events.TypeGroupRewarded, events.TypeRewardShadowed, events.TypeGroupDropped, events.TypePolicyUpdated, events.TypeEvalScored,
}

// run returns the series of another run.
func (q *queries) run(r *http.Request) (any, error) {
	name := r.URL.Query().Get("name")
	if err := events.ValidName(name); q.others == nil || err != nil {
		return nil, fmt.Errorf("run: %w", errQuery)
	}
	ctx, cancel := context.WithTimeout(r.Context(), overlayTime)
	defer cancel()
	bus, closeBus, err := q.others.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	other := NewFollower()
	err = errors.Join(other.Follow(ctx, only{bus, overlayTypes}, name, events.Start), closeBus(), ctx.Err())
	if err != nil {
		return nil, err
	}
	var view object
	other.View(func(s *State) {
		view = object{"run": name, "series": s.Series.view(-1), "evals": s.Snapshot().Evals}
	})
	return view, nil
}

// only is a bus of which some types are read.
type only struct {
	Bus
	types []events.Type
}

// Read implements Bus.
func (o only) Read(ctx context.Context, config events.ReadConfig) (events.Reader, error) {
	config.Types = o.types
	return o.Bus.Read(ctx, config)
}
