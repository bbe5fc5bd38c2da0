package gpuworker

import (
	"time"

	"codea1/events"
)

// Names of engines.
const (
	EngineTiny  = "tiny"
	EngineTorch = "torch"
)

// EngineFlags are the settings of the engine that computes the models.
type EngineFlags struct {
	Engine     string `yaml:"engine" help:"Engine that computes the models: tiny (embedded, on the CPU) or torch (Hugging Face models, on a GPU; needs the Python package codea1_torch)." default:"tiny" enum:"tiny,torch"`
	TorchFlags `embed:"" yaml:",inline"`
	LoRAFlags  `embed:"" yaml:",inline"`
	VLLMFlags  `embed:"" yaml:",inline"`

	Sampler      string `yaml:"sampler" help:"What samples: engine (the engine that trains), vllm (vLLM beside the torch engine, on its GPU or several), or openai (a server with OpenAI's interface; for evaluations and for the role of --frozen, because it takes no weights)." default:"engine" enum:"engine,vllm,openai" change:"never"`
	Model        string `yaml:"model" help:"With --sampler openai: name of the model on the server." placeholder:"NAME" change:"never"`
	ServerPrompt string `yaml:"server-prompt" help:"With --sampler openai: chat (the server applies the chat template) or completion (the text of the prompt, for a base model)." default:"chat" enum:"chat,completion" change:"never"`
	Stop         string `yaml:"stop" help:"With --sampler openai: texts that end a completion, with | between them; \\n is a line break." placeholder:"TEXTS" change:"never"`
	ServerFlags  `embed:"" yaml:",inline"`
}

// Names of samplers and of their prompts.
const (
	SamplerEngine    = "engine"
	SamplerVLLM      = "vllm"
	SamplerOpenAI    = "openai"
	PromptCompletion = "completion"
)

// ServerFlags are the settings of a model server that a machine has. The address is one
// of them: a process never sends its key to an address that comes from the bus.
type ServerFlags struct {
	Server         string        `yaml:"server" help:"With --sampler openai: address of the server, http://HOST:PORT/v1 or https://HOST/v1." placeholder:"URL" change:"resume" scope:"machine"`
	ServerKeyFile  string        `yaml:"server-key-file" help:"File with the API key of the server, which only its owner can read. It is read again for each request." placeholder:"FILE" change:"resume" scope:"machine"`
	ServerCAFile   string        `name:"server-ca-file" yaml:"server-ca-file" help:"PEM file of the certificate authorities of the server. Default: those of the system." placeholder:"FILE" change:"resume" scope:"machine"`
	ServerRequests int           `yaml:"server-requests" help:"Requests to the server at the same time." default:"32" min:"1" max:"1024" change:"resume" scope:"machine"`
	ServerTimeout  time.Duration `yaml:"server-timeout" help:"Time that one request to the server may take." default:"10m" above:"0s" change:"resume" scope:"machine"`
	ServerLogProbs bool          `yaml:"server-log-probs" help:"Record token ids and log-probs. A server without them is refused." change:"resume" scope:"machine"`
}

// LoRAFlags are the settings of an adapter that the torch engine trains in place of
// all weights.
type LoRAFlags struct {
	LoRARank    int     `name:"lora-rank" yaml:"lora-rank" help:"Rank of a LoRA adapter that the torch engine trains in place of all weights (needs the Python package peft); 0 trains all." default:"0" min:"0" max:"4096" change:"never"`
	LoRAAlpha   float64 `name:"lora-alpha" yaml:"lora-alpha" help:"The change of a LoRA adapter is scaled by this over the rank." default:"32" above:"0" max:"1e6" change:"never"`
	LoRATargets string  `name:"lora-targets" yaml:"lora-targets" help:"Projections that a LoRA adapter changes, with commas between them." default:"q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj" change:"never"`
}

// VLLMFlags are the settings of vLLM on a machine.
type VLLMFlags struct {
	VLLMMemory         float64 `name:"vllm-memory" yaml:"vllm-memory" help:"With --sampler vllm: share of each GPU's memory that vLLM may use for one model." default:"0.3" above:"0" max:"0.95" change:"resume" scope:"machine"`
	VLLMTensorParallel int     `name:"vllm-tensor-parallel" yaml:"vllm-tensor-parallel" help:"With --sampler vllm: GPUs that compute one copy of the model together." default:"1" min:"1" max:"64" change:"resume" scope:"machine"`
	VLLMDataParallel   int     `name:"vllm-data-parallel" yaml:"vllm-data-parallel" help:"With --sampler vllm: copies of the model, which share the completions." default:"1" min:"1" max:"64" change:"resume" scope:"machine"`
}

// VLLMShare returns the share of a GPU that vLLM takes for a model; 0 without vLLM.
func (f *EngineFlags) VLLMShare() float64 {
	if f.Sampler != SamplerVLLM {
		return 0
	}
	return f.VLLMMemory
}

// TorchFlags are the settings of the torch engine on a machine.
type TorchFlags struct {
	TorchPython      string `yaml:"torch-python" help:"Python with codea1_torch for the torch engine; empty: python3." placeholder:"FILE" change:"resume" scope:"machine"`
	Device           string `yaml:"device" help:"Device of the torch engine: cpu, cuda or cuda:N; auto: a GPU if there is one." default:"auto" change:"resume" scope:"machine"`
	RolloutDevice    string `yaml:"rollout-device" help:"Device on which the torch engine samples; empty: the device that trains, with one copy of the weights. With max-staleness above 0, both devices work at the same time." placeholder:"DEVICE" change:"resume" scope:"machine"`
	BroadcastWeights bool   `yaml:"broadcast-weights" help:"Hand new weights to the torch engines of other processes on this machine by NCCL between GPUs, or gloo between CPUs. Without it, or where that fails, they read the checkpoint." change:"resume" scope:"machine"`

	TrainGPUs int `name:"train-gpus" yaml:"train-gpus" help:"GPUs of this machine, from device on, that train a model of the torch engine together. They share weights, gradients and the optimizer's state; with lora-rank each has all weights." default:"1" min:"1" max:"64" change:"resume" scope:"machine"`

	OptimizerState string `yaml:"optimizer-state" help:"Where the torch engine keeps AdamW's moments and the float32 weights: device; cpu (main memory, copied in parts for each step, same results); 8bit (on the device, moments in 8 bits, other results)." default:"device" enum:"device,cpu,8bit" change:"resume" scope:"machine"`
	Reference      string `yaml:"reference" help:"Where the torch engine keeps the reference model, which it loads only if kl is above 0: device, or cpu (main memory, copied to the device for its log-probs)." default:"device" enum:"device,cpu" change:"resume" scope:"machine"`
}

// ModelFlags are the settings of the checkpoints of a run.
type ModelFlags struct {
	CodeModel string `yaml:"code-model" help:"Checkpoint directory that the Code LLM starts from, or with the torch engine a name on the Hugging Face hub; empty for the embedded one." placeholder:"DIR" scope:"path" change:"never"`
	TestModel string `yaml:"test-model" help:"Checkpoint directory that the Test LLM starts from, or with the torch engine a name on the Hugging Face hub; empty for the embedded one." placeholder:"DIR" scope:"path" change:"never"`

	Frozen string `yaml:"frozen" help:"Role with a model that is sampled from and never trained: code or test; empty for none. It is version 0 of that role's model, or with --sampler openai the model of the server." default:"" enum:",code,test" change:"never"`

	StoreFlags `embed:"" yaml:",inline"`

	KeepCheckpoints int `yaml:"keep-checkpoints" help:"Newest checkpoints to keep per model." default:"3" min:"1" max:"1048576" change:"resume"`
	KeepEvery       int `yaml:"keep-every" help:"Keep the checkpoint of every step that this number divides as well; 0 for none." default:"0" min:"0" max:"10000000" change:"resume"`
}

// StoreFlags are the settings of the store of checkpoints on a machine.
type StoreFlags struct {
	CheckpointStore string `yaml:"checkpoint-store" help:"Store of the checkpoints for stages on machines that do not share the run directory: file:///DIRECTORY, or s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=REGION with the credentials in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or in a file (AWS_SHARED_CREDENTIALS_FILE). Every machine of the run names the same one; none by default." placeholder:"URL" change:"resume" scope:"machine"`
}

// SamplingFlags are the settings of sampling that both roles share.
type SamplingFlags struct {
	TopP float64 `yaml:"top-p" help:"Nucleus sampling: sample from the most likely tokens whose probabilities add up to this." default:"1.0" above:"0" max:"1"`
	TopK int     `yaml:"top-k" help:"Sample from this many of the most likely tokens; 0 for all." default:"0" min:"0" max:"1073741824"`

	PromptFlags `embed:"" yaml:",inline"`
}

// TrainingFlags are the settings of the trainers. The defaults are the paper's.
type TrainingFlags struct {
	ProblemsPerUpdate int     `yaml:"problems-per-update" help:"Problems of one mini-batch, which makes one optimizer step." default:"128" min:"1" max:"10000" group:"Optimizer"`
	LearningRate      float64 `yaml:"learning-rate" help:"Peak learning rate of AdamW." default:"1e-6" above:"0" group:"Optimizer"`
	TestLearningRate  float64 `yaml:"test-learning-rate" help:"Peak learning rate of the Test LLM; 0 for the same as the Code LLM." default:"0" min:"0" group:"Optimizer"`
	WarmupSteps       int     `yaml:"warmup-steps" help:"Optimizer steps of linear warm-up; cosine decay follows." default:"10" min:"0" max:"10000000" group:"Optimizer"`
	MinLRRatio        float64 `name:"min-lr-ratio" yaml:"min-lr-ratio" help:"Share of the peak learning rate at the end of the schedule." default:"0" min:"0" max:"1" group:"Optimizer"`
	WeightDecay       float64 `yaml:"weight-decay" help:"Decoupled weight decay." default:"0.1" min:"0" max:"1000" group:"Optimizer"`
	Beta1             float64 `name:"beta1" yaml:"beta1" help:"Decay of AdamW's first moment." default:"0.9" min:"0" max:"1" group:"Optimizer"`
	Beta2             float64 `name:"beta2" yaml:"beta2" help:"Decay of AdamW's second moment." default:"0.999" min:"0" max:"1" group:"Optimizer"`
	Epsilon           float64 `yaml:"epsilon" help:"Epsilon of AdamW." default:"1e-8" above:"0" group:"Optimizer"`
	GradClip          float64 `yaml:"grad-clip" help:"Largest global norm of the gradient; 0 for no limit." default:"1.0" min:"0" max:"1e9" group:"Optimizer"`

	ClipLow       float64 `yaml:"clip-low" help:"PPO: the ratio is clipped below 1 minus this." default:"0.2" min:"0" max:"1" group:"Loss"`
	ClipHigh      float64 `yaml:"clip-high" help:"PPO: the ratio is clipped above 1 plus this." default:"0.28" min:"0" max:"1e9" group:"Loss"`
	DualClip      float64 `yaml:"dual-clip" help:"Dual clip constant c for negative advantages; 0 for none." default:"10" min:"0" max:"1e9" group:"Loss"`
	LogRatioClamp float64 `yaml:"log-ratio-clamp" help:"Log-ratios are clamped to plus or minus this." default:"20" above:"0" group:"Loss"`
	OldLogProbs   string  `yaml:"old-log-probs" help:"Log-probs that an update starts from: sampled (recorded with the responses), recomputed (of the trainer's weights before the step, with importance weights), or auto: recomputed if max-staleness is above 0." default:"auto" enum:"auto,sampled,recomputed" group:"Loss"`
	ImportanceCap float64 `yaml:"importance-cap" help:"With recomputed old log-probs: a token counts by its probability under the trainer's weights over that under the sampler's, at most by this; 0 counts all alike." default:"2" min:"0" max:"1e9" group:"Loss"`
	KL            float64 `name:"kl" yaml:"kl" help:"Weight of the KL divergence (k3) to the reference model." default:"0.001" min:"0" max:"1e9" group:"Loss"`
}

// Hyperparameters returns the hyper-parameters of a role's trainer.
func (f *TrainingFlags) Hyperparameters(role events.Role, steps, problemsPerStep, maxStaleness int) Hyperparameters {
	learningRate := f.LearningRate
	if role == events.RoleTest && f.TestLearningRate != 0 {
		learningRate = f.TestLearningRate
	}
	old := f.OldLogProbs
	switch {
	case old != "auto":
	case maxStaleness > 0:
		old = OldRecomputed
	default:
		old = OldSampled
	}
	updates := (problemsPerStep + f.ProblemsPerUpdate - 1) / f.ProblemsPerUpdate // of one step
	return Hyperparameters{
		Schedule: Schedule{Base: learningRate, Warmup: f.WarmupSteps, Total: updates * steps, MinRatio: f.MinLRRatio},
		Update: UpdateConfig{
			ClipLow: f.ClipLow, ClipHigh: f.ClipHigh, DualClip: f.DualClip, LogRatioClamp: f.LogRatioClamp, KLCoef: f.KL,
			WeightDecay: f.WeightDecay, Beta1: f.Beta1, Beta2: f.Beta2, Epsilon: f.Epsilon, GradClip: f.GradClip,
		},
		GroupsPerStep: problemsPerStep, GroupsPerBatch: f.ProblemsPerUpdate, MaxStaleness: maxStaleness, OldProbs: old, ImportanceCap: f.ImportanceCap,
	}
}
