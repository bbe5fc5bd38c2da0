package dashboard

import (
	"embed"
	"io/fs"
	"net/http"
)

// The page is plain HTML, CSS and JavaScript without a build step. page/VENDOR
// lists the unchanged files of other projects and their sources. The page about
// several runs has its own files, in report, and some of these.
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
