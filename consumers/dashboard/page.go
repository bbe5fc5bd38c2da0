package dashboard

import (
	"embed"
	"io/fs"
	"net/http"
)

// The page is plain HTML, CSS and JavaScript without a build step. page/VENDOR
// lists the unchanged files of other projects and their sources. The report has
// its own files and some of the page's.
//
//go:embed page report
var files embed.FS

func page() http.Handler {
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // the name is a constant
	}
	return http.FileServerFS(page)
}
