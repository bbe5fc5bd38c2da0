package audit

import (
	"codea1/events"
	"codea1/replay/query"
)

// scorer caches the recipes of a log: most logs have one.
type scorer struct {
	recipes query.Recipes
	known   map[recipeKey]query.Score
}

type recipeKey struct {
	name  string
	alpha float64
}

func newScorer(recipes query.Recipes) *scorer {
	return &scorer{recipes, make(map[recipeKey]query.Score)}
}

// again computes a recorded reward again, from the same verdicts and with the
// same recipe.
func (s *scorer) again(executed *events.CodeExecuted, recorded *events.GroupRewarded) (*events.GroupRewarded, error) {
	if s.recipes == nil {
		return nil, query.ErrNoRecipes
	}
	key := recipeKey{recorded.Recipe, recorded.Alpha}
	score, ok := s.known[key]
	if !ok {
		var err error
		if score, err = s.recipes.Recipe(key.name, key.alpha); err != nil {
			return nil, err
		}
		s.known[key] = score
	}
	return score(executed)
}
