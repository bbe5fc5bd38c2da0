package kernel

// tileScalar is the micro-kernel in Go. It computes blocks of 2x4 and 1x4 elements,
// which fit the registers. The chain of an element is the same in both.
func tileScalar(rows, k int, a []float32, aRow, aStep int, b []float32, _ int, c []float32, ldc int, load bool) {
	b = b[:k*panelCols]
	r := 0
	for ; r+2 <= rows; r += 2 {
		for j := 0; j < panelCols; j += 4 {
			c0, c1 := c[r*ldc+j:][:4:4], c[(r+1)*ldc+j:][:4:4]
			tile2x4(a[r*aRow:], a[(r+1)*aRow:], aStep, b[j:], k, c0, c1, load)
		}
	}
	if r < rows {
		for j := 0; j < panelCols; j += 4 {
			tile1x4(a[r*aRow:], aStep, b[j:], k, c[r*ldc+j:][:4:4], load)
		}
	}
}

func tile2x4(a0, a1 []float32, aStep int, b []float32, k int, c0, c1 []float32, load bool) {
	var s00, s01, s02, s03, s10, s11, s12, s13 float32
	if load {
		s00, s01, s02, s03 = c0[0], c0[1], c0[2], c0[3]
		s10, s11, s12, s13 = c1[0], c1[1], c1[2], c1[3]
	}
	for p, i := 0, 0; p < k; p, i = p+1, i+aStep {
		v := (*[4]float32)(b[p*panelCols:])
		x0, x1 := a0[i], a1[i]
		s00 += float32(x0 * v[0])
		s01 += float32(x0 * v[1])
		s02 += float32(x0 * v[2])
		s03 += float32(x0 * v[3])
		s10 += float32(x1 * v[0])
		s11 += float32(x1 * v[1])
		s12 += float32(x1 * v[2])
		s13 += float32(x1 * v[3])
	}
	c0[0], c0[1], c0[2], c0[3] = s00, s01, s02, s03
	c1[0], c1[1], c1[2], c1[3] = s10, s11, s12, s13
}

func tile1x4(a []float32, aStep int, b []float32, k int, c []float32, load bool) {
	var s0, s1, s2, s3 float32
	if load {
		s0, s1, s2, s3 = c[0], c[1], c[2], c[3]
	}
	for p, i := 0, 0; p < k; p, i = p+1, i+aStep {
		v := (*[4]float32)(b[p*panelCols:])
		x := a[i]
		s0 += float32(x * v[0])
		s1 += float32(x * v[1])
		s2 += float32(x * v[2])
		s3 += float32(x * v[3])
	}
	c[0], c[1], c[2], c[3] = s0, s1, s2, s3
}
