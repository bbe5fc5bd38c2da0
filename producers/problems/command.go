package problems

// Command is `codea1 problems`.
type Command struct {
	List   ListCommand   `cmd:"" help:"List the problems of a set."`
	Show   ShowCommand   `cmd:"" help:"Show one problem whole."`
	Check  CheckCommand  `cmd:"" help:"Run every ground truth against its golden tests."`
	Corpus CorpusCommand `cmd:"" help:"Print training text made from the built-in training problems."`
}
