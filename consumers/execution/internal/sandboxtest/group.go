package sandboxtest

import "codea1/events"

// Sampled makes a group: one row of suites per code.
func Sampled(solution string, historical []events.HistoricalTest, codes []string, suites [][]string) *events.TestsSampled {
	in := &events.TestsSampled{
		Posed: events.ProblemPosed{
			Plan: events.Plan{
				Purpose: events.PurposeTrain, Step: 1, Groups: 1, Answers: len(codes), Suites: len(suites[0]), Tests: 3, Temperature: 1,
			},
			Problem:    events.Problem{ID: "p", Question: "Double the number.", EntryPoint: "f", Solution: solution},
			Historical: historical,
		},
		CodeVersion: 3, Version: 4, Codes: codes, Prompts: make([]events.Int32s, len(codes)),
	}
	for _, row := range suites {
		var completions []events.Completion
		for _, text := range row {
			completions = append(completions, events.Completion{Text: text, Finish: events.FinishStop})
		}
		in.Suites = append(in.Suites, completions)
	}
	return in
}
