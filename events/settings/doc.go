// Package settings makes configuration out of structs. A struct holds the
// settings of one concern and lies in the package that it configures; its tags
// say everything about each of them:
//
//	yaml:"steps"      the key in a file, and the name of the flag
//	help:"..."        what it means
//	default:"3"       its value where nothing sets it
//	group:"Schedule"  the heading that it is printed under
//	enum:"a,b"        the only values
//	min:"1" max:"8"   the bounds; above:"0" is a bound that the value must exceed
//	change:"..."      when it may change: see [Field.Change]
//	scope:"..."       which machines it applies to: see [Field.Scope]
//
// A program composes such structs as fields with the tags embed:"" and
// yaml:",inline". The command line and the environment are read by kong, which
// knows the same tags; files are read by the YAML library. Start reading at
// [Fields].
package settings
