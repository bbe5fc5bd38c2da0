package kernel

// SwiGLU sets dst to silu(gate)*up for each element of gate, with
// silu(g) = g/(1+exp(-g)). dst may be gate or up.
func SwiGLU(dst, gate, up []float32) {
	n := len(gate)
	current().swiglu(dst[:n], gate, up[:n])
}

// SwiGLUBackward sets the gradients of the inputs of [SwiGLU]. dOut is the gradient
// of its output. With s = 1/(1+exp(-gate)):
//
//	dUp   = dOut * gate*s
//	dGate = dOut * up * (s + gate*s*(1-s))
//
// dGate and dUp may be any of the inputs, but not each other.
func SwiGLUBackward(dGate, dUp, gate, up, dOut []float32) {
	n := len(gate)
	current().swigluBackward(dGate[:n], dUp[:n], gate, up[:n], dOut[:n])
}
