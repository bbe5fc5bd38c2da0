package main

const (
	floatBytes = 4
	partLanes  = 4 // elements of a register
	partBytes  = partLanes * floatBytes
	blockParts = 4 // registers of a block
	blockLanes = blockParts * partLanes
	blockBytes = blockLanes * floatBytes
)

// lane is the operand of one instruction: four elements, or fewer at the end.
type lane struct {
	*function
	offset int     // bytes after the pointers
	whole  bool    // four elements
	alone  bool    // one element
	rest   general // otherwise the number of elements, 1 to 3
	fill   vector  // value of the lanes after rest elements
}

// load reads the lane's elements at a pointer. After a single element the other
// lanes are zero.
func (l lane) load(pointer general) vector {
	v := l.vec()
	switch {
	case l.whole:
		l.op("FMOVQ %d(%v), %s", l.offset, pointer, v.f())
	case l.alone:
		l.op("FMOVS %d(%v), %s", l.offset, pointer, v.f())
	default:
		l.loadRest(v, pointer)
	}
	return v
}

func (l lane) loadRest(v vector, pointer general) {
	done := l.label("loaded")
	l.mov(v, l.fill)
	l.scratch(func() {
		next := l.copied(pointer)
		l.op("VLD1.P %d(%v), %s", floatBytes, next, v.s(0))
		l.op("CMP $2, %v", l.rest)
		l.op("BLT %s", done)
		l.op("VLD1.P %d(%v), %s", floatBytes, next, v.s(1))
		l.op("BEQ %s", done)
		l.op("VLD1 (%v), %s", next, v.s(2))
	})
	l.mark(done)
}

func (l lane) store(v vector, pointer general) {
	switch {
	case l.whole:
		l.op("FMOVQ %s, %d(%v)", v.f(), l.offset, pointer)
	case l.alone:
		l.op("FMOVS %s, %d(%v)", v.f(), l.offset, pointer)
	default:
		panic("a rest has no store")
	}
}

// each runs body for n elements at the pointers: first blocks, then four elements,
// then single elements. It changes n and the pointers.
func (f *function) each(n general, pointers []general, body func(l lane)) {
	single, done := f.label("single"), f.label("done")
	loop := func(elements int, next string, part func()) {
		again := f.label("loop")
		f.mark(again)
		f.op("CMP $%d, %v", elements, n)
		f.op("BLT %s", next)
		part()
		f.advance(elements, n, pointers)
		f.op("B %s", again)
	}
	four := f.label("four")
	loop(blockLanes, four, func() {
		for part := range blockParts {
			f.scratch(func() { body(lane{function: f, offset: part * partBytes, whole: true}) })
		}
	})
	f.mark(four)
	loop(partLanes, single, func() {
		f.scratch(func() { body(lane{function: f, whole: true}) })
	})
	f.mark(single)
	loop(1, done, func() {
		f.scratch(func() { body(lane{function: f, alone: true}) })
	})
	f.mark(done)
}

func (f *function) advance(elements int, n general, pointers []general) {
	for _, p := range pointers {
		f.op("ADD $%d, %v", elements*floatBytes, p)
	}
	f.op("SUB $%d, %v", elements, n)
}

// reduce runs body for n elements with accumulators, so that element 16i+j always
// uses lane j. Whole blocks use first and, if second is given, alternately first
// and second. The remainder after the last whole block uses last, with fill after
// the end. reduce changes n and the pointers.
func (f *function) reduce(n general, pointers []general, first, second, last []vector, fill vector, body func(l lane, acc vector)) {
	single, rest, done := f.label("single"), f.label("rest"), f.label("folded")
	block := func(offset int, acc []vector) {
		for part := range blockParts {
			f.scratch(func() {
				body(lane{function: f, offset: offset + part*partBytes, whole: true}, acc[part])
			})
		}
	}
	if second != nil {
		pair := f.label("pair")
		f.mark(pair)
		f.op("CMP $%d, %v", 2*blockLanes, n)
		f.op("BLT %s", single)
		block(0, first)
		block(blockBytes, second)
		f.advance(2*blockLanes, n, pointers)
		f.op("B %s", pair)
	}
	f.mark(single)
	f.op("CMP $%d, %v", blockLanes, n)
	f.op("BLT %s", rest)
	block(0, first)
	f.advance(blockLanes, n, pointers)
	f.op("B %s", single)

	f.mark(rest)
	var few [blockParts]string
	for part := range few {
		few[part] = f.label("few")
		if part == blockParts-1 {
			break // fewer than 16 elements fill at most three parts
		}
		f.op("CMP $%d, %v", partLanes, n)
		f.op("BLT %s", few[part])
		f.scratch(func() { body(lane{function: f, whole: true}, last[part]) })
		f.advance(partLanes, n, pointers)
	}
	for part := blockParts - 1; part >= 0; part-- {
		f.mark(few[part])
		f.op("CBZ %v, %s", n, done)
		f.scratch(func() { body(lane{function: f, rest: n, fill: fill}, last[part]) })
		f.op("B %s", done)
	}
	f.mark(done)
}

// fold combines the 16 lanes of a block in its first lane, in halves. join sets a
// to the combination of a and b.
func (f *function) fold(v []vector, join func(a, b vector)) vector {
	join(v[0], v[2])
	join(v[1], v[3])
	join(v[0], v[1])
	for _, lanes := range []int{2, 1} {
		f.turn(v[1], v[0], lanes)
		join(v[0], v[1])
	}
	return v[0]
}

func (f *function) foldSum(v []vector) vector {
	return f.fold(v, func(a, b vector) { f.fadd(a, a, b) })
}
