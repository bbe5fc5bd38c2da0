#include "textflag.h"

// More chains than latency times units, so that no multiply-add waits for
// another.

#define ZERO(v) VEOR v.B16, v.B16, v.B16
#define FMA(v) VFMLA V30.S4, V31.S4, v.S4

// func fmaNEON(rounds int)
TEXT ·fmaNEON(SB), NOSPLIT, $0-8
	MOVD rounds+0(FP), R0
	ZERO(V0); ZERO(V1); ZERO(V2); ZERO(V3); ZERO(V4); ZERO(V5)
	ZERO(V6); ZERO(V7); ZERO(V8); ZERO(V9); ZERO(V10); ZERO(V11)
	ZERO(V12); ZERO(V13); ZERO(V14); ZERO(V15); ZERO(V16); ZERO(V17)
	ZERO(V18); ZERO(V19); ZERO(V20); ZERO(V21); ZERO(V22); ZERO(V23)
	ZERO(V30); ZERO(V31)

round:
	FMA(V0); FMA(V1); FMA(V2); FMA(V3); FMA(V4); FMA(V5)
	FMA(V6); FMA(V7); FMA(V8); FMA(V9); FMA(V10); FMA(V11)
	FMA(V12); FMA(V13); FMA(V14); FMA(V15); FMA(V16); FMA(V17)
	FMA(V18); FMA(V19); FMA(V20); FMA(V21); FMA(V22); FMA(V23)
	SUBS $1, R0
	BNE  round
	RET
