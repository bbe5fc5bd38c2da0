package main

import (
	"fmt"
	"reflect"

	"github.com/alecthomas/kong"

	"codea1/events"
)

// StageCommand is `codea1 stage`: one stage of a run in a separate process. The
// recorder decides the settings of the run; the other stages take them from
// run.started.
type StageCommand struct{ kong.Plugins }

// newStageCommand returns the command with a subcommand for each stage that is
// a process.
func newStageCommand() StageCommand {
	var all StageCommand
	for _, s := range events.Stages {
		if s.Within != "" {
			continue
		}
		help := s.Summary
		if s.Kind == events.Projection && s.Replicas == events.One {
			help += " A run has one; another process waits until that one ends."
		}
		command := stages[s.Name].command
		if command == nil {
			command = WorkerStage{}
		}
		field := reflect.StructField{
			Name: "Stage", Type: reflect.TypeOf(command),
			Tag: reflect.StructTag(fmt.Sprintf(`cmd:"" name:%q help:%q`, s.Name, help)),
		}
		all.Plugins = append(all.Plugins, reflect.New(reflect.StructOf([]reflect.StructField{field})).Interface())
	}
	return all
}
