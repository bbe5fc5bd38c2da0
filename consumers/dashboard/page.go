package dashboard

import (
	"embed"
	"io/fs"
	"net/http"
)

// The page is plain HTML, CSS and JavaScript without a build step. page/VENDOR
// lists the unchanged files of other projects and their sources.
//
//go:embed page
var pageFiles embed.FS

func page() http.Handler {
	files, err := fs.Sub(pageFiles, "page")
	if err != nil {
		panic(err) // the name is a constant
	}
	return http.FileServerFS(files)
}
