package settings

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"codea1/events/commandline"
)

// Presets are named values of settings, in files preset_NAME.yaml. S has the field with
// the key preset, which holds the names of the presets of a configuration.
type Presets[S any] struct {
	Files   fs.FS
	Base    []string // presets that set the sizes of a run; the others are changes to one of them
	Default string   // base preset
}

const (
	presetFile = "preset_"
	presetKey  = "preset"
)

// Names returns the names of the presets.
func (p *Presets[S]) Names() []string {
	files, err := fs.Glob(p.Files, presetFile+"*.yaml")
	if err != nil {
		panic(err) // the pattern is wrong
	}
	for i, file := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(file, presetFile), ".yaml")
	}
	return files
}

// Settings returns the defaults of the tags, overridden by the files of presets. Commas
// separate their names. The file of the base preset comes first; if names has no base
// preset, it is that of Default.
func (p *Presets[S]) Settings(names string) (*S, error) {
	base, changes := "", []string{}
	for name := range strings.SplitSeq(names, ",") {
		switch {
		case !slices.Contains(p.Names(), name):
			return nil, commandline.Wrong(fmt.Errorf("preset %q is unknown; there are: %s", name, strings.Join(p.Names(), ", ")))
		case !slices.Contains(p.Base, name):
			changes = append(changes, name)
		case base != "":
			return nil, commandline.Wrong(fmt.Errorf("presets %s and %s exclude each other; leave one out", base, name))
		default:
			base = name
		}
	}
	s := new(S)
	if err := Defaults(s); err != nil {
		return nil, err
	}
	setBy := map[string]string{}
	for _, name := range append([]string{cmp.Or(base, p.Default)}, changes...) {
		path := presetFile + name + ".yaml"
		text, err := fs.ReadFile(p.Files, path)
		if err != nil {
			return nil, err
		}
		keys, err := Keys(path, text)
		if err := errors.Join(err, Read(path, text, s)); err != nil {
			return nil, err
		}
		for _, key := range keys {
			if other := setBy[key]; other != "" {
				return nil, fmt.Errorf("presets %s and %s both set --%s; leave one out", other, name, key)
			}
			if slices.Contains(changes, name) {
				setBy[key] = name
			}
		}
	}
	return s, Set(s, presetKey, names)
}

// Read returns the settings of presets, overridden by a configuration in YAML with a name
// for errors. Without presets they are those that the configuration names.
func (p *Presets[S]) Read(name string, text []byte, presets string) (*S, error) {
	if presets == "" {
		named := new(S)
		if err := errors.Join(Set(named, presetKey, p.Default), Read(name, text, named)); err != nil {
			return nil, err
		}
		if f, ok := find(Fields(named), presetKey); ok {
			presets = f.String()
		}
	}
	s, err := p.Settings(presets)
	if err != nil {
		return nil, err
	}
	if err := Read(name, text, s); err != nil {
		return nil, err
	}
	return s, Set(s, presetKey, presets)
}
