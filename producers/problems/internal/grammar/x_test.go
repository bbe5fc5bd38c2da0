package grammar

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func TestX(t *testing.T) {
	t0 := time.Now()
	for _, f := range families {
		t1 := time.Now()
		n := len(f.problems())
		fmt.Println(f.name, n, f.quota, time.Since(t1))
	}
	fmt.Println(time.Since(t0))
	t0 = time.Now()
	a, b := Sets()
	fmt.Println(len(a), len(b), time.Since(t0))
	r := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		p := a[r.IntN(len(a))]
		fmt.Println(p.Say.Say(r.IntN))
		fmt.Println(p.Func.Source())
	}
}
