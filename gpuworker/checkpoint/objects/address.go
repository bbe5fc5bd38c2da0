package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"strings"
)

// Store holds objects by their keys.
type Store interface {
	// Put stores the content of a file. It continues an upload that was cut, and does
	// nothing if the key has an object of the same size: an object never changes.
	Put(ctx context.Context, key, file string) error
	// Get returns the bytes of an object from an offset to its end. The error is
	// fs.ErrNotExist if the store lacks the object.
	Get(ctx context.Context, key string, offset int64) (io.ReadCloser, error)
	// List returns the keys below a directory.
	List(ctx context.Context, dir string) ([]string, error)
	// Remove deletes the object of a key, and the objects and cut uploads below it.
	Remove(ctx context.Context, key string) error
	// Close releases the connections.
	Close() error
}

// Address is the parsed address of a store.
type Address struct {
	Dir              string // of a file:// address
	Endpoint         *url.URL
	Bucket, Prefix   string
	Region           string
	providerOfAmazon bool
}

const amazon = "https://s3.amazonaws.com"

// ParseAddress parses file:///DIRECTORY or
// s3://BUCKET/PREFIX?endpoint=http://HOST:PORT&region=REGION. An error does not repeat
// the address, because it may contain a password by mistake.
func ParseAddress(text string) (*Address, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("is no URL: want file:///DIRECTORY or s3://BUCKET/PREFIX?endpoint=https://HOST:PORT")
	case u.User != nil:
		return nil, errors.New("contains a user: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SHARED_CREDENTIALS_FILE")
	case u.Fragment != "" || u.Opaque != "":
		return nil, errors.New("has a fragment or no //: want file:///DIRECTORY or s3://BUCKET/PREFIX")
	}
	switch u.Scheme {
	case "file":
		if u.Host != "" || u.RawQuery != "" || !filepath.IsAbs(u.Path) || path.Clean(u.Path) != u.Path {
			return nil, errors.New("is not file:// and a clean absolute path without a host and a query")
		}
		return &Address{Dir: u.Path}, nil
	case "s3":
		return parseS3(u)
	default:
		return nil, fmt.Errorf("has the scheme %q: want file or s3", u.Scheme)
	}
}

func parseS3(u *url.URL) (*Address, error) {
	a := &Address{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
	if a.Bucket == "" || strings.ContainsAny(a.Bucket, ":%") {
		return nil, errors.New("names no bucket: want s3://BUCKET/PREFIX")
	}
	if a.Prefix != "" && !fs.ValidPath(a.Prefix) {
		return nil, errors.New("has a prefix with an empty part, . or ..: want s3://BUCKET/PREFIX")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("has a malformed query: want ?endpoint=https://HOST:PORT&region=REGION")
	}
	for key, values := range query {
		if key != "endpoint" && key != "region" || len(values) != 1 {
			return nil, fmt.Errorf("has the query parameter %.20q: want endpoint and region, once each", key)
		}
	}
	a.Region = query.Get("region")
	endpoint := query.Get("endpoint")
	if a.providerOfAmazon = endpoint == ""; a.providerOfAmazon {
		endpoint = amazon
	}
	a.Endpoint, err = url.Parse(endpoint)
	if err != nil || a.Endpoint.Scheme != "http" && a.Endpoint.Scheme != "https" || a.Endpoint.Host == "" || a.Endpoint.User != nil ||
		strings.Trim(a.Endpoint.Path, "/") != "" || a.Endpoint.RawQuery != "" || a.Endpoint.Fragment != "" {
		return nil, errors.New("has an endpoint that is not http://HOST:PORT or https://HOST:PORT")
	}
	return a, nil
}

// Open returns the store at an address. It sends no request.
func Open(a *Address) (Store, error) {
	if a.Dir != "" {
		return openDirectory(a.Dir)
	}
	return openBucket(a)
}

// checkKey returns an error for a key that is no clean relative path.
func checkKey(key string) error {
	if key == "." || !fs.ValidPath(key) || strings.Contains(key, `\`) {
		return fmt.Errorf("object key %q is no clean relative path", key)
	}
	return nil
}
