package torch

// Operations of the child.
const (
	opOpen          = "open"
	opEncode        = "encode"
	opSample        = "sample"
	opLoadWeights   = "load_weights"
	opLogProbs      = "log_probs"
	opUpdate        = "update"
	opSave          = "save"
	opLoad          = "load"
	opLoadReference = "load_reference"
	opCancel        = "cancel"
)

// Kinds of answers.
const (
	kindHello    = "hello"
	kindBeat     = "beat"
	kindProgress = "progress"
	kindResult   = "result"
	kindError    = "error"
)

// request is a frame to the child, without id and op. PROTOCOL.md says which fields
// an operation has.
type request map[string]any

// answer is a frame from the child. PROTOCOL.md says which fields a kind and an
// operation have.
type answer struct {
	Kind string `msgpack:"kind"`
	ID   uint64 `msgpack:"id"`

	Protocol     int      `msgpack:"protocol"`
	Package      string   `msgpack:"package"`
	Python       string   `msgpack:"python"`
	Torch        string   `msgpack:"torch"`
	Transformers string   `msgpack:"transformers"`
	CUDA         bool     `msgpack:"cuda"`
	Capabilities []string `msgpack:"capabilities"`

	Done int64 `msgpack:"done"` // of a progress frame

	Code    string `msgpack:"code"`
	Message string `msgpack:"message"`
	Fatal   bool   `msgpack:"fatal"` // the child ends after this frame

	Device       string `msgpack:"device"`
	DType        string `msgpack:"dtype"`
	Architecture string `msgpack:"architecture"`
	Parameters   int64  `msgpack:"parameters"`

	Prompt   []byte   `msgpack:"prompt"`
	Tokens   ragged   `msgpack:"tokens"`
	LogProbs []byte   `msgpack:"log_probs"`
	Stopped  []byte   `msgpack:"stopped"`
	Texts    []string `msgpack:"texts"`

	Loss         float64 `msgpack:"loss"`
	KL           float64 `msgpack:"kl"`
	ClipFraction float64 `msgpack:"clip_fraction"`
	RatioMean    float64 `msgpack:"ratio_mean"`
	Entropy      float64 `msgpack:"entropy"`
	GradNorm     float64 `msgpack:"grad_norm"`
	Trained      int     `msgpack:"trained"`
}
