package rewards

import "math"

// The parameters of verpo. Others have described the formula; these values are
// ours.
const (
	verpoHardness = 2     // a: how much more a rarely passed test counts
	verpoDiscount = 0.995 // g: of a turn; there is one
	verpoTurn     = 0.5   // b: weight of R_turn
	verpoLeast    = 0.001 // the smallest s
	verpoDivisor  = 1e-6  // d
)

type verpo struct{}

// Name implements Recipe.
func (verpo) Name() string { return NameVerpo }

// Rules implements Recipe.
func (verpo) Rules() Rules { return Rules{Golden: true, Advantage: AdvantageMean} }

// Reward implements Recipe. With rho_j the share of the answers that pass golden
// test j:
//
//	s      = max(std(rho)/2, 0.001)
//	N_j    = sum over all tests i of exp(-(rho_j - rho_i)^2 / (2 s^2))
//	w_j    = exp(-a rho_j) / (N_j + d)
//	R_turn = sum of w_j over the passed tests
//	R_traj = g if the answer passes every test, else 0
//	R_code = R_traj + b R_turn
//
// The advantage is the distance of R_code to its mean. It is the sum of both
// terms' distances to their means, the second one times b.
func (verpo) Reward(g *Group) error {
	passed, err := g.golden()
	if err != nil {
		return err
	}
	rates := make([]float64, len(passed[0]))
	for j := range rates {
		passes := 0
		for i := range passed {
			if passed[i][j] {
				passes++
			}
		}
		rates[j] = ratio(passes, len(passed))
	}
	_, squares := moments(rates)
	s := max(math.Sqrt(squares/float64(max(1, len(rates))))/2, verpoLeast)
	weights := make([]float64, len(rates))
	for j, rate := range rates {
		near := 0.0
		for _, other := range rates {
			near += math.Exp(-(rate - other) * (rate - other) / (2 * s * s))
		}
		weights[j] = math.Exp(-verpoHardness*rate) / (near + verpoDivisor)
	}
	for i := range g.Answers {
		if !g.Answers[i].Loads {
			continue
		}
		turn, whole := 0.0, 0.0
		for j, w := range weights {
			if passed[i][j] {
				turn += w
			}
		}
		if allTrue(passed[i]) {
			whole = verpoDiscount
		}
		g.Answers[i].Reward.Reward = whole + verpoTurn*turn
	}
	return nil
}
