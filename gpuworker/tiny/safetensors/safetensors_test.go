package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// file builds a file of a literal header and data.
func file(header string, data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

// collect reads all tensors of a file.
func collect(data []byte) (map[string][]float32, *Header, error) {
	got := make(map[string][]float32)
	h, err := Read(bytes.NewReader(data), int64(len(data)), func(t Tensor) ([]float32, error) {
		got[t.Name] = make([]float32, t.Elements())
		return got[t.Name], nil
	})
	return got, h, err
}

func TestWriteRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tensors []Values
		want := make(map[string][]float32)
		for _, name := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z."é]{1,9}`), 0, 4, rapid.ID).Draw(t, "names") {
			shape := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 3).Draw(t, "shape")
			data := make([]float32, product(shape))
			for i := range data {
				data[i] = math.Float32frombits(rapid.Uint32().Draw(t, "bits"))
			}
			tensors = append(tensors, Values{name, shape, data})
			want[name] = data
		}
		var b bytes.Buffer
		if err := Write(&b, tensors, F32, map[string]string{"step": "3"}); err != nil {
			t.Fatal(err)
		}
		got, h, err := collect(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		sameBits := cmp.Comparer(func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })
		if diff := cmp.Diff(want, got, sameBits); diff != "" {
			t.Fatal(diff)
		}
		if h.Metadata["step"] != "3" {
			t.Fatalf("metadata %v", h.Metadata)
		}
	})
}

func TestBFloat16(t *testing.T) {
	inf := float32(math.Inf(1))
	values := []float32{0, 1, -2.5, 1 + 1.0/256, 1 + 3.0/256, math.MaxFloat32, inf, float32(math.NaN()), 1e-40}
	want := []float32{0, 1, -2.5, 1, 1 + 4.0/256, inf, inf, float32(math.NaN()), math.Float32frombits(0x10000)}
	var b bytes.Buffer
	if err := Write(&b, []Values{{"x", []int{9}, values}}, BF16, nil); err != nil {
		t.Fatal(err)
	}
	got, _, err := collect(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got["x"], cmpopts.EquateNaNs()); diff != "" {
		t.Error(diff)
	}
}

func TestHalf(t *testing.T) {
	for bits, want := range map[uint16]float64{
		0x0000: 0, 0x3c00: 1, 0xc100: -2.5, 0x7bff: 65504, 0x0001: math.Ldexp(1, -24), 0x83ff: -math.Ldexp(1023, -24),
		0x0400: math.Ldexp(1, -14), 0x7c00: math.Inf(1), 0xfc00: math.Inf(-1),
	} {
		data := file(`{"x":{"dtype":"F16","shape":[],"data_offsets":[0,2]}}`, binary.LittleEndian.AppendUint16(nil, bits))
		got, _, err := collect(data)
		if err != nil {
			t.Fatal(err)
		}
		if float64(got["x"][0]) != want {
			t.Errorf("%04x is %g, want %g", bits, got["x"][0], want)
		}
	}
}

func TestCorrupt(t *testing.T) {
	entry := func(fields string) string { return `{"x":{` + fields + `}}` }
	for name, c := range map[string]struct {
		data []byte
		says string
	}{
		"empty":             {nil, "only 0 bytes"},
		"header too long":   {file("{}", nil)[:9], "header of"},
		"huge header":       {binary.LittleEndian.AppendUint64(nil, 1<<60), "header of"},
		"not JSON":          {file("{{", nil), "header"},
		"not an object":     {file("[]", nil), "not a JSON object"},
		"text after":        {file("{} {}", nil), "has data after"},
		"unknown dtype":     {file(entry(`"dtype":"F7","shape":[1],"data_offsets":[0,4]`), make([]byte, 4)), `"x": unknown dtype "F7"`},
		"negative dim":      {file(entry(`"dtype":"F32","shape":[-1],"data_offsets":[0,4]`), make([]byte, 4)), "bad shape"},
		"overflowing shape": {file(entry(`"dtype":"F32","shape":[4611686018427387904,16],"data_offsets":[0,4]`), make([]byte, 4)), "bad shape"},
		"wrong length":      {file(entry(`"dtype":"F32","shape":[2],"data_offsets":[0,4]`), make([]byte, 4)), "takes 8"},
		"backwards":         {file(entry(`"dtype":"F32","shape":[1],"data_offsets":[4,0]`), make([]byte, 4)), "bad data_offsets"},
		"no offsets":        {file(entry(`"dtype":"F32","shape":[1]`), make([]byte, 4)), "bad data_offsets"},
		"hole":              {file(entry(`"dtype":"F32","shape":[1],"data_offsets":[4,8]`), make([]byte, 8)), "begins at byte 4"},
		"data missing":      {file(entry(`"dtype":"F32","shape":[1],"data_offsets":[0,4]`), make([]byte, 3)), "3 bytes of data"},
		"data left over":    {file(entry(`"dtype":"F32","shape":[1],"data_offsets":[0,4]`), make([]byte, 5)), "5 bytes of data"},
		"twice": {file(`{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`,
			make([]byte, 8)), "twice"},
	} {
		_, _, err := collect(c.data)
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestSkipAndUnreadable(t *testing.T) {
	data := file(`{"n":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},"x":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}`,
		binary.LittleEndian.AppendUint32(make([]byte, 8), math.Float32bits(7)))
	x := make([]float32, 1)
	_, err := Read(bytes.NewReader(data), int64(len(data)), func(t Tensor) ([]float32, error) {
		if t.Name == "n" {
			return nil, nil
		}
		return x, nil
	})
	if err != nil || x[0] != 7 {
		t.Errorf("x is %v, error %v", x, err)
	}
	if _, _, err := collect(data); err == nil || !strings.Contains(err.Error(), `tensor "n": dtype I64`) {
		t.Errorf("error %v", err)
	}
}

func TestReadModelShards(t *testing.T) {
	shard := func(name string, v float32) *fstest.MapFile {
		var b bytes.Buffer
		if err := Write(&b, []Values{{name, []int{1}, []float32{v}}}, F32, nil); err != nil {
			t.Fatal(err)
		}
		return &fstest.MapFile{Data: b.Bytes()}
	}
	fsys := fstest.MapFS{
		"a.safetensors":                shard("x", 1),
		"b.safetensors":                shard("y", 2),
		"model.safetensors.index.json": {Data: []byte(`{"weight_map":{"x":"a.safetensors","y":"b.safetensors"}}`)},
	}
	got := make(map[string][]float32)
	dest := func(t Tensor) ([]float32, error) {
		got[t.Name] = make([]float32, t.Elements())
		return got[t.Name], nil
	}
	if err := ReadModel(fsys, dest); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]float32{"x": {1}, "y": {2}}, got); diff != "" {
		t.Error(diff)
	}
	fsys["b.safetensors"].Data = fsys["b.safetensors"].Data[:20]
	if err := ReadModel(fsys, dest); !errors.Is(err, ErrCorrupt) || !strings.HasPrefix(err.Error(), "b.safetensors: ") {
		t.Errorf("error %v", err)
	}
	if err := ReadModel(fstest.MapFS{}, dest); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	fsys["b.safetensors"] = shard("y", 2)
	for index, want := range map[string]string{
		`{"weight_map":{"x":"a.safetensors","y":"c.safetensors"}}`:                     "c.safetensors: file does not exist",
		`{"weight_map":{"x":"a.safetensors","y":"b.safetensors","z":"b.safetensors"}}`: `b.safetensors: corrupt safetensors file: tensor "z" is missing, which model.safetensors.index.json lists (1 in all)`,
		`{"weight_map":{"x":"a.safetensors"}}`:                                         "",
		`{"weight_map":{"y":"b.safetensors","z":"a.safetensors"}}`:                     `a.safetensors: tensor "x" is not in model.safetensors.index.json`,
		`{"weight_map":{"x":"b.safetensors","y":"a.safetensors"}}`:                     `a.safetensors: tensor "x" is in b.safetensors according to`,
		`{"weight_map":{"x":"a.safetensors","x":"b.safetensors","y":"b.safetensors"}}`: `tensor "x" is missing`,
		`{"weight_map":{"x":"../a.safetensors"}}`:                                      `the shard "../a.safetensors" of tensor "x" is not a file of the directory`,
		`{"weight_map":{"x":"/a.safetensors"}}`:                                        `the shard "/a.safetensors"`,
		`{"weight_map":{"x":"."}}`:                                                     `the shard "."`,
		`{"weight_map":{"x":"folder/a.safetensors"}}`:                                  `the shard "folder/a.safetensors"`,
		`{"weight_map":{"x":"folder"}}`:                                                "folder is a directory; want a regular file",
		`{"weight_map":{}}`:                                                            "lists no tensor",
		`{"weight_map":{"x":3}}`:                                                       "model.safetensors.index.json: corrupt",
		`{"weight`:                                                                     "model.safetensors.index.json: corrupt",
	} {
		fsys["folder"] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
		fsys[IndexFile] = &fstest.MapFile{Data: []byte(index)}
		err := ReadModel(fsys, dest)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", index, err, want)
		}
	}
}

func FuzzParseHeader(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"__metadata__":{"format":"pt"},"x":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}}`,
		`{"a":{"dtype":"F32","shape":[],"data_offsets":[4,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`,
		`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"b":null}`, `{"a`, `null`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := ParseHeader(data)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("error %v is not ErrCorrupt", err)
			}
			return
		}
		var at int64
		for _, tensor := range h.Tensors {
			if tensor.begin != at || tensor.Elements() < 0 || int64(tensor.Elements())*elementBytes[tensor.DType] != tensor.end-at {
				t.Fatalf("tensor %+v at %d", tensor, at)
			}
			at = tensor.end
		}
	})
}
