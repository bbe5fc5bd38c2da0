package settings

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Field is one setting of a struct.
type Field struct {
	Key   string
	Help  string
	Group string
	// Change says when the setting may change after a run has begun: "resume"
	// whenever the run goes on, "never" not even in a fork of the run. Without
	// the tag it changes in a fork only.
	Change string
	// Scope says whether processes on other machines take the setting from
	// run.started. They never take a "machine" setting. A "path" may differ
	// between machines that have the same content. A "run" setting is the same in
	// all stages, though a resume may change it. Without the tag a stage may have
	// its own value if a resume may change the setting.
	Scope string

	value reflect.Value
	tag   reflect.StructTag
}

// Values of the tags change and scope.
const (
	ChangeResume = "resume"
	ChangeNever  = "never"
	ScopeMachine = "machine"
	ScopePath    = "path"
	ScopeRun     = "run"
)

// Fields returns the settings in a struct, which is given by its address, in
// the order of their declaration.
func Fields(s any) []Field { return fieldsOf(reflect.ValueOf(s).Elem(), "") }

func fieldsOf(v reflect.Value, group string) []Field {
	var fields []Field
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		key, options, _ := strings.Cut(tag.Get("yaml"), ",")
		group := cmp.Or(tag.Get("group"), group)
		switch {
		case options == "inline":
			fields = append(fields, fieldsOf(v.Field(i), group)...)
		case key != "":
			fields = append(fields, Field{
				Key: key, Help: tag.Get("help"), Group: group, Change: tag.Get("change"), Scope: tag.Get("scope"),
				value: v.Field(i), tag: tag,
			})
		}
	}
	return fields
}

// find returns the field of a key.
func find(fields []Field, key string) (*Field, bool) {
	i := slices.IndexFunc(fields, func(f Field) bool { return f.Key == key })
	if i < 0 {
		return nil, false
	}
	return &fields[i], true
}

// String returns the value as a command line or a file writes it.
func (f Field) String() string { return fmt.Sprint(f.value.Interface()) }

// Brief returns the value as a message shows it: that of several lines by its size and its
// hash.
func (f Field) Brief() string {
	text := f.String()
	if !strings.Contains(text, "\n") {
		return text
	}
	return fmt.Sprintf("a text of %d bytes with the SHA-256 %.16x", len(text), sha256.Sum256([]byte(text)))
}

// Defaults gives every setting its default.
func Defaults(s any) error {
	fields := Fields(s)
	for i := range fields {
		if err := fields[i].set(fields[i].tag.Get("default")); err != nil {
			return err
		}
	}
	return nil
}

// Copy copies the settings that both structs have and that wanted accepts.
func Copy(to, from any, wanted func(*Field) bool) {
	source := Fields(from)
	for _, f := range Fields(to) {
		if g, ok := find(source, f.Key); ok && wanted(&f) {
			f.value.Set(g.value)
		}
	}
}

// Difference is a setting that has different values in two structs: Was in the
// first one, Is in the second one.
type Difference struct{ Was, Is Field }

// Differences returns the settings that have different values in two structs of one
// type. It compares the settings that relevant accepts.
func Differences(a, b any, relevant func(*Field) bool) []Difference {
	var all []Difference
	other := Fields(b)
	for i, f := range Fields(a) {
		if relevant(&f) && !f.value.Equal(other[i].value) {
			all = append(all, Difference{f, other[i]})
		}
	}
	return all
}

// Check returns an error about the first setting with a value that is out of bounds, not
// allowed or not finite. source returns the name of a key for the error: the flag, variable
// or file that sets it.
func Check(s any, source func(key string) string) error {
	fields := Fields(s)
	for i := range fields {
		if err := fields[i].check(); err != nil {
			return fmt.Errorf("%s %w", source(fields[i].Key), err)
		}
	}
	return nil
}

// check returns an error for Check, without the name of the setting.
func (f *Field) check() error {
	if enum := f.tag.Get("enum"); enum != "" && !slices.Contains(strings.Split(enum, ","), f.String()) {
		return fmt.Errorf("is %q; want one of %s", f.String(), strings.ReplaceAll(enum, ",", ", "))
	}
	// NaN is out of all bounds, although no comparison with it is true.
	for _, bound := range []struct {
		tag string
		met func(order int) bool
	}{
		{"min", func(order int) bool { return order >= 0 }},
		{"above", func(order int) bool { return order > 0 }},
		{"max", func(order int) bool { return order <= 0 }},
	} {
		text, ok := f.tag.Lookup(bound.tag)
		if !ok {
			continue
		}
		limit := Field{Key: f.Key, value: reflect.New(f.value.Type()).Elem()}
		if err := limit.set(text); err != nil {
			return err
		}
		if order, comparable := compare(f.value, limit.value); !comparable || !bound.met(order) {
			return fmt.Errorf("is %s; want %s", f, f.bounds())
		}
	}
	if f.value.CanFloat() && (math.IsInf(f.value.Float(), 0) || math.IsNaN(f.value.Float())) {
		return fmt.Errorf("is %s; want a finite number", f)
	}
	return nil
}

// compare orders two numbers of one type; NaN has no order.
func compare(a, b reflect.Value) (order int, comparable bool) {
	switch {
	case a.CanFloat():
		return cmp.Compare(a.Float(), b.Float()), !math.IsNaN(a.Float())
	case a.CanUint():
		return cmp.Compare(a.Uint(), b.Uint()), true
	default:
		return cmp.Compare(a.Int(), b.Int()), true
	}
}

// bounds describes the allowed values in words.
func (f *Field) bounds() string {
	above, hasAbove := f.tag.Lookup("above")
	least, hasLeast := f.tag.Lookup("min")
	most, hasMost := f.tag.Lookup("max")
	switch {
	case hasLeast && hasMost:
		return least + " to " + most
	case hasAbove && hasMost:
		return "more than " + above + ", at most " + most
	case hasAbove:
		return "more than " + above
	case hasMost:
		return most + " or less"
	default:
		return least + " or more"
	}
}

// kind describes the type of the setting in words.
func (f *Field) kind() string {
	switch v := f.value.Interface().(type) {
	case time.Duration:
		return "a time such as 30s or 5m"
	case bool:
		return "true or false"
	case float32, float64:
		return "a number"
	case int, int64:
		return "a whole number"
	case uint, uint64:
		return "a whole number, 0 or more"
	default:
		return fmt.Sprintf("a %T", v)
	}
}

// OfMachine says that a setting belongs to a machine.
func OfMachine(f *Field) bool { return f.Scope == ScopeMachine }

// OfRun says that a stage takes a setting from run.started only.
func OfRun(f *Field) bool { return f.Scope == ScopeRun }

// Fixed says that a resume cannot change a setting.
func Fixed(f *Field) bool { return f.Change != ChangeResume }
