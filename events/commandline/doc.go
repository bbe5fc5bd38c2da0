// Package commandline serves the command line beside its commands: the completion of
// shells, a check of the environment variables, and profiles of the process.
package commandline
