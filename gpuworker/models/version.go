package models

import (
	"fmt"

	"codea1/events"
	"codea1/events/rundir"
	"codea1/gpuworker/checkpoint"
)

// VersionDir returns the directory of a version of a role's model in a run directory: the
// newest one for nil.
func VersionDir(run string, role events.Role, version *int) (string, error) {
	folder := checkpoint.Folder{Path: rundir.Checkpoints(run, role)}
	versions, err := folder.Versions()
	if err != nil {
		return "", err
	}
	at := 0
	switch {
	case version != nil:
		at = *version
	case len(versions) > 0:
		at = versions[len(versions)-1]
	}
	dir := rundir.Start(run, role)
	if at > 0 {
		dir = folder.Dir(at)
	}
	if !exists(dir) {
		return "", fmt.Errorf("run %s has no version %d of its %s model; it has 0 and %v", run, at, role, versions)
	}
	return dir, nil
}
