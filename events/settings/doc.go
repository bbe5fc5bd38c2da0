// Package settings describes configuration by the tags of structs. A struct holds
// the settings of one concern and is part of the package that it configures. The
// tags of a field are:
//
//	yaml:"steps"      the key in a file, and the name of the flag
//	help:"..."        the help text of the flag, and the comment in a file
//	default:"3"       the value that applies when nothing sets another one
//	group:"Schedule"  the heading of the setting
//	enum:"a,b"        the allowed values
//	min:"1" max:"8"   the bounds; with above:"0" the value must be more than 0
//	change:"..."      when the setting may change: see [Field.Change]
//	scope:"..."       the machines that it applies to: see [Field.Scope]
//
// A program composes such structs as fields with the tags embed:"" and
// yaml:",inline". Kong reads the command line and the environment by the same
// tags; the YAML library reads files. Start reading at [Fields].
package settings
