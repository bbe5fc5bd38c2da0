package judging

// Flags are the settings of the judge on the command line.
type Flags struct {
	JudgeServer  string `yaml:"judge-server" help:"With a reward that needs a judge model: address of its server. For a reward model http://HOST:PORT, whose /classify is asked; for a language model http://HOST:PORT/v1." placeholder:"URL" change:"resume" scope:"machine"`
	JudgeModel   string `yaml:"judge-model" help:"Name of the judge model on its server." placeholder:"NAME" change:"resume"`
	JudgeKeyFile string `yaml:"judge-key-file" help:"File with the API key of the judge's server, which only its owner can read. It is read again for each request." placeholder:"FILE" change:"resume" scope:"machine"`
	JudgeCAFile  string `name:"judge-ca-file" yaml:"judge-ca-file" help:"PEM file of the certificate authorities of the judge's server. Default: those of the system." placeholder:"FILE" change:"resume" scope:"machine"`
}
