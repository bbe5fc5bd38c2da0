package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"codea1/events"
)

// Bounds of the groups that can be listed and found.
const (
	maxGroups     = 1 << 17 // rows, about 80 bytes each
	maxGroupSpots = 1 << 14 // positions in the order of the bus
)

// groupRow is a training group that ended.
type groupRow struct {
	Group   string            `json:"group"`
	Step    int               `json:"step"`
	Problem string            `json:"problem"`
	Code    number            `json:"code"` // mean rewards
	Test    number            `json:"test"`
	Pass    number            `json:"pass"`    // mean share of its own tests that an answer passes
	Dropped events.DropReason `json:"dropped"` // empty if it was rewarded
}

// groupIndex lists the training groups that ended, and says where to read the
// events of a group.
type groupIndex struct {
	rows  []groupRow
	cut   int // rows left out, the oldest ones
	spots []groupSpot
	evals map[string]events.Position // before the first group of an evaluation
}

// groupSpot is the position before the first problem of a step.
type groupSpot struct {
	step     int
	position events.Position
}

func (x *groupIndex) posed(plan *events.Plan, before events.Position) {
	if plan.Purpose == events.PurposeEval {
		if _, known := x.evals[plan.Tag]; !known && len(x.evals) < maxEvals {
			x.evals[plan.Tag] = before
		}
		return
	}
	if n := len(x.spots); n > 0 && x.spots[n-1].step >= plan.Step {
		return
	}
	if len(x.spots) >= maxGroupSpots { // every second one is enough: reading takes longer
		for i := range len(x.spots) / 2 {
			x.spots[i] = x.spots[2*i]
		}
		x.spots = x.spots[:len(x.spots)/2]
	}
	x.spots = append(x.spots, groupSpot{plan.Step, before})
}

// add adds a row. Beyond the bound the oldest eighth is left out.
func (x *groupIndex) add(row groupRow) {
	if len(x.rows) >= maxGroups {
		x.rows = slices.Delete(x.rows, 0, maxGroups/8)
		x.cut += maxGroups / 8
	}
	x.rows = append(x.rows, row)
}

// position returns where to read from for a group.
func (x *groupIndex) position(group string) (events.Position, bool) {
	if tag, ok := strings.CutPrefix(group, "e-"); ok {
		end := max(0, strings.LastIndexByte(tag, '-'))
		position, known := x.evals[tag[:end]]
		return position, known
	}
	var step, slot int
	if _, err := fmt.Sscanf(group, "s%d-q%d", &step, &slot); err != nil || step < 1 {
		return "", false
	}
	i, exact := slices.BinarySearchFunc(x.spots, step, func(s groupSpot, step int) int { return cmp.Compare(s.step, step) })
	if !exact {
		i--
	}
	if i < 0 {
		return "", false
	}
	return x.spots[i].position, true
}

// groupsView lists groups, newest first.
type groupsView struct {
	Groups  []groupRow `json:"groups"`
	Matches int        `json:"matches"`
	Cut     int        `json:"cut"` // older groups that are not listed
}

// find returns the newest groups of a step and a problem; 0 and empty for all.
func (x *groupIndex) find(step int, problem string, most int) groupsView {
	view := groupsView{Groups: []groupRow{}, Cut: x.cut}
	for _, row := range slices.Backward(x.rows) {
		if step > 0 && row.Step != step || problem != "" && row.Problem != problem {
			continue
		}
		if view.Matches++; len(view.Groups) < most {
			view.Groups = append(view.Groups, row)
		}
	}
	return view
}

// rowOf returns the row of a rewarded group.
func rowOf(group string, p *events.GroupRewarded) groupRow {
	var code, test, pass Mean
	for m := range p.Code {
		if !p.Code[m].Masked {
			code.add(p.Code[m].Reward)
		}
		for n := range p.Test[m] {
			if suite := &p.Test[m][n]; !suite.Masked {
				test.add(suite.Reward)
				if suite.Valid > 0 && p.Code[m].Loads {
					pass.add(suite.PassNew)
				}
			}
		}
	}
	return groupRow{Group: group, Step: p.Plan.Step, Problem: p.ProblemID, Code: code.number(), Test: test.number(), Pass: pass.number()}
}

// ErrNoGroup is returned for a group without an event.
var ErrNoGroup = errors.New("no event of this group was found")

// groupTime bounds the reading of the events of a group.
const groupTime = 20 * time.Second

// Group reads the events of a group from the bus that Follow reads. When Replace gives
// the follower another bus meanwhile, it reads them from that one.
func (f *Follower) Group(ctx context.Context, group string) (*Group, error) {
	for {
		f.mu.RLock()
		replaced := f.replaced
		f.mu.RUnlock()
		reading, cancel := context.WithTimeout(ctx, groupTime)
		go func() {
			select {
			case <-replaced:
				cancel()
			case <-reading.Done():
			}
		}()
		g, err := f.group(reading, group)
		cancel()
		select {
		case <-replaced:
			if err != nil && ctx.Err() == nil {
				continue
			}
		default:
		}
		return g, err
	}
}

func (f *Follower) group(ctx context.Context, group string) (*Group, error) {
	f.mu.RLock()
	bus, run, newest, models := f.bus, f.state.Run, f.newest, f.state.Models
	from, known := f.state.groups.position(group)
	f.mu.RUnlock()
	if bus == nil || !known {
		return nil, ErrNoGroup
	}
	reader, err := bus.Read(ctx, events.ReadConfig{Run: run, From: from, Malformed: true})
	if err != nil {
		return nil, fmt.Errorf("dashboard: read group %s: %w", group, err)
	}
	defer reader.Close()
	g := newGroupReader(group, models)
	for !g.done() {
		m, _, err := reader.Next(ctx)
		var malformed *events.MalformedError
		if errors.As(err, &malformed) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("dashboard: read group %s: %w", group, err)
		}
		if m.Group == group || m.Type == events.TypePolicyUpdated || m.Type == events.TypeRunStarted {
			if e, err := m.Admit(); err == nil {
				g.apply(e)
			}
		}
		if m.ID == newest {
			break
		}
	}
	if g.Problem == "" && g.Dropped == nil {
		return nil, ErrNoGroup
	}
	return &g.Group, nil
}

// Bounds of the texts that the page gets.
const (
	maxTextBytes  = 64 << 10 // of one text
	maxLineBytes  = 2 << 10  // of one line of a text
	maxBriefBytes = 400      // of a text in a table
	maxGroupBytes = 4 << 20  // of all texts of a group
)

// textBudget cuts texts, so that all of them together stay below maxGroupBytes.
type textBudget struct{ left int }

func (b *textBudget) cut(text string) string {
	most := min(maxTextBytes, max(b.left, 64))
	if len(text) > most || longestLine(text) > maxLineBytes {
		text = cutText(text, most)
	}
	b.left -= len(text)
	return text
}

func longestLine(text string) int {
	longest, start := 0, 0
	for i := range len(text) {
		if text[i] == '\n' {
			longest, start = max(longest, i-start), i+1
		}
	}
	return max(longest, len(text)-start)
}

// cutText cuts every line and the whole, and says how much is left out.
func cutText(text string, most int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if room := most - b.Len(); room < len(line) && room < maxLineBytes {
			break
		}
		body := strings.TrimSuffix(line, "\n")
		if len(body) > maxLineBytes {
			head := cutBytes(body, maxLineBytes)
			fmt.Fprintf(&b, "%s … (%s more bytes)\n", head, thousands(len(body)-len(head)))
			continue
		}
		b.WriteString(line)
	}
	if b.Len() < len(text) && !strings.Contains(b.String(), " more bytes)") {
		fmt.Fprintf(&b, "… (%s more bytes)", thousands(len(text)-b.Len()))
	}
	return b.String()
}

// cutBytes cuts a text between two characters.
func cutBytes(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// brief cuts a text for a table.
func brief(text string) string {
	if len(text) <= maxBriefBytes {
		return text
	}
	return cutBytes(text, maxBriefBytes) + "…"
}
