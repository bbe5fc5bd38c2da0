// Package commandline has what the command line needs beside its commands: the completion
// of shells, a check of the environment variables, and profiles of the process.
package commandline
