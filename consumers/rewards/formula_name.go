package rewards

import "strings"

// A formula's name is what group.rewarded records as its recipe, so it says
// everything: formula(FIELD=VALUE,...) with the fields that differ from
// PaperFormula's, in the order of formulaFields.
const (
	formulaBegin = "formula("
	formulaEnd   = ")"
)

func isFormula(name string) bool { return strings.HasPrefix(name, formulaBegin) }

func (f *Formula) name() string {
	paper := PaperFormula()
	var parts []string
	for i := range formulaFields {
		field := &formulaFields[i]
		if v := field.get(f); v != field.get(&paper) {
			parts = append(parts, field.name+"="+v)
		}
	}
	return formulaBegin + strings.Join(parts, ",") + formulaEnd
}

// formulaNamed returns the formula of a name.
func formulaNamed(name string) (Recipe, error) {
	inner, ok := strings.CutSuffix(strings.TrimPrefix(name, formulaBegin), formulaEnd)
	if !ok {
		return nil, badField(name, "lacks its closing %s", formulaEnd)
	}
	f := PaperFormula()
	for part := range strings.SplitSeq(inner, ",") {
		if part == "" && inner == "" {
			break
		}
		key, value, _ := strings.Cut(part, "=")
		field := fieldNamed(key)
		if field == nil {
			return nil, badField(key, "is no field; there are %s", fieldNames())
		}
		if err := field.set(&f, value); err != nil {
			return nil, err
		}
	}
	if err := f.Validate(); err != nil {
		return nil, err
	}
	return f, nil
}
