package sandboxfusion

import (
	"encoding/base64"
	"fmt"
	"path"
	"strings"

	"codea1/consumers/execution/sandbox"
)

// Limits of the files of a request. The program's directory holds more of them.
const (
	maxNames      = 1000 // files and directories; and files to fetch
	maxPathBytes  = 1024
	maxNameBytes  = 255 // of the file system
	maxPathDepth  = 64
	maxFilesRatio = 8 // all files together, as a multiple of the largest one
)

// cleanFiles returns the files of a request under their shortest paths. The error is
// a *requestError: files that the sandbox could not make would look like its failure.
func (r *RunCodeRequest) cleanFiles(config sandbox.Config) (map[string]*string, error) {
	wrong := func(name, reason string) error {
		return &requestError{"files", "value_error", fmt.Sprintf("%.100q %s", name, reason)}
	}
	clean, folders := make(map[string]*string, len(r.Files)), map[string]bool{}
	total := int64(len(r.Code) + len(r.Stdin))
	for name, content := range r.Files {
		if reason := badPath(name); reason != "" {
			return nil, wrong(name, reason)
		}
		short := path.Clean(name)
		if _, twice := clean[short]; twice {
			return nil, wrong(name, "is there twice")
		}
		clean[short] = content
		if content == nil {
			continue
		}
		size := int64(base64.StdEncoding.DecodedLen(len(*content)))
		if total += size; size > config.FileBytes+2 || total > maxFilesRatio*config.FileBytes {
			return nil, wrong(name, fmt.Sprintf("is too large: the limit is %d bytes for a file and %d for all", config.FileBytes, maxFilesRatio*config.FileBytes))
		}
		if _, err := base64.StdEncoding.DecodeString(*content); err != nil {
			return nil, wrong(name, "is no base64: "+err.Error())
		}
		for folder := path.Dir(short); folder != "."; folder = path.Dir(folder) {
			folders[folder] = true
		}
	}
	if n := len(clean) + len(folders); n > maxNames {
		return nil, &requestError{"files", "too_long", fmt.Sprintf("%d files and directories, over the limit of %d", n, maxNames)}
	}
	for folder := range folders {
		if clean[folder] != nil || folder == programFile(r.Language) {
			return nil, wrong(folder, "is a file and a directory")
		}
	}
	return clean, nil
}

func programFile(language string) string {
	if language == languagePytest {
		return "test_main.py"
	}
	return "main.py"
}

// badPath returns the fault of a file's path; empty for a good one.
func badPath(name string) string {
	clean := path.Clean(name)
	parts := strings.Split(clean, "/")
	switch {
	case name == "" || clean == "." || path.IsAbs(clean) || parts[0] == "..":
		return "is not a relative path"
	case strings.ContainsRune(name, 0):
		return "has a NUL byte"
	case strings.HasSuffix(name, "/"):
		return "is a directory"
	case len(name) > maxPathBytes:
		return fmt.Sprintf("is longer than %d bytes", maxPathBytes)
	case len(parts) > maxPathDepth:
		return fmt.Sprintf("is deeper than %d directories", maxPathDepth)
	}
	for _, part := range parts {
		if len(part) > maxNameBytes {
			return fmt.Sprintf("has a name longer than %d bytes", maxNameBytes)
		}
	}
	return ""
}
