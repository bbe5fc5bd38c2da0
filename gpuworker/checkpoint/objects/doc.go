// Package objects stores files under keys: in a bucket of an S3 server, or in a
// directory that several machines mount.
//
// It owns the address of a store, its credentials, and the transfer of one file. It
// must not know the meaning of the files: package checkpoint names them and checks
// their content.
//
// An object is complete or missing. A key is a clean relative path, so no caller
// leaves the prefix of the store. Credentials come from the environment or from the
// files of the AWS tools, never from the address.
//
// Start reading at address.go.
package objects
