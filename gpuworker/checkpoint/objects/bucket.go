package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const (
	// defaultPartBytes is the size of the parts of a large object. S3 wants at least
	// 5 MiB and at most maxParts of them.
	defaultPartBytes = 16 << 20
	maxParts         = 10_000
	partsAtOnce      = 4
	// stallLimit ends a transfer without progress. TCP would notice a silent peer
	// after 15 minutes.
	stallLimit = time.Minute
)

// bucket is a Store in a bucket of an S3 server. Each request is sent once: the
// caller decides whether to try again.
type bucket struct {
	core      *minio.Core
	transport *http.Transport
	address   *Address
	partBytes int64
}

func openBucket(a *Address) (Store, error) {
	secure := a.Endpoint.Scheme == "https"
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, fmt.Errorf("checkpoint store: %w", err)
	}
	core, err := minio.NewCore(a.Endpoint.Host, &minio.Options{
		Creds: findCredentials(a), Secure: secure, Transport: transport, Region: a.Region, MaxRetries: 1,
	})
	if err != nil {
		return nil, fmt.Errorf("checkpoint store: %w", err)
	}
	return &bucket{core, transport, a, defaultPartBytes}, nil
}

// findCredentials returns the credentials in the environment, in the files of the AWS
// tools, or of the machine's role. Only a machine that has a role is asked for it: the
// question takes long where nothing answers.
func findCredentials(a *Address) *credentials.Credentials {
	providers := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
	role := a.providerOfAmazon
	for _, name := range []string{"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"} {
		role = role || os.Getenv(name) != ""
	}
	if role {
		providers = append(providers, &credentials.IAM{Client: &http.Client{Timeout: 10 * time.Second}})
	}
	return credentials.NewChainCredentials(providers)
}

func (b *bucket) Close() error {
	b.transport.CloseIdleConnections()
	return nil
}

func (b *bucket) name(key string) (string, error) {
	return path.Join(b.address.Prefix, key), checkKey(key)
}

// explain returns an error that a caller can decide on. The server's text of a refusal
// may name the access key, so only the code is taken.
func (b *bucket) explain(op, key string, err error) error {
	if err == nil {
		return nil
	}
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) {
		return fmt.Errorf("checkpoint store: %s %s: %w", op, key, err)
	}
	reason := fmt.Errorf("%s (HTTP %d)", answer.Code, answer.StatusCode)
	remedy := ""
	switch answer.Code {
	case minio.NoSuchKey:
		reason = fs.ErrNotExist
	case minio.NoSuchBucket:
		reason, remedy = ErrRefused, "create the bucket "+b.address.Bucket
	case minio.RequestTimeTooSkewed:
		reason, remedy = ErrRefused, "set the clock of this machine: it differs too much from the server's"
	default:
		switch answer.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			reason, remedy = ErrRefused, "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the credentials file, and their rights in the bucket"
		case http.StatusNotFound:
			reason = fs.ErrNotExist
		}
	}
	if remedy != "" {
		return fmt.Errorf("checkpoint store: %s %s: %w: %s: %s", op, key, reason, answer.Code, remedy)
	}
	return fmt.Errorf("checkpoint store: %s %s: %w", op, key, reason)
}

// Get implements Store.
func (b *bucket) Get(ctx context.Context, key string, offset int64) (io.ReadCloser, error) {
	name, err := b.name(key)
	if err != nil {
		return nil, err
	}
	var options minio.GetObjectOptions
	if offset > 0 {
		if err := options.SetRange(offset, 0); err != nil {
			return nil, err
		}
	}
	watched, watch := newWatch(ctx)
	body, _, _, err := b.core.GetObject(watched, b.address.Bucket, name, options)
	var answer minio.ErrorResponse
	if errors.As(err, &answer) && answer.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		watch.Stop()
		return io.NopCloser(strings.NewReader("")), nil // nothing follows the offset
	}
	if err != nil {
		watch.Stop()
		return nil, b.explain("get", key, err)
	}
	return &download{ReadCloser: body, watch: watch}, nil
}

// List implements Store.
func (b *bucket) List(ctx context.Context, dir string) ([]string, error) {
	name, err := b.name(dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, stallLimit)
	defer cancel() // ends the goroutine of the listing
	var keys []string
	for object := range b.core.Client.ListObjects(ctx, b.address.Bucket, minio.ListObjectsOptions{Prefix: name + "/", Recursive: true}) {
		if object.Err != nil {
			return nil, b.explain("list", dir, object.Err)
		}
		key := strings.TrimPrefix(object.Key, b.address.Prefix+"/")
		// A server may answer with any text.
		if strings.HasPrefix(key, dir+"/") && checkKey(key) == nil {
			keys = append(keys, key)
		}
	}
	return keys, b.explain("list", dir, ctx.Err())
}

// Remove implements Store.
func (b *bucket) Remove(ctx context.Context, key string) error {
	name, err := b.name(key)
	if err != nil {
		return err
	}
	below, err := b.List(ctx, key)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stallLimit)
	defer cancel()
	for _, k := range append([]string{key}, below...) {
		if err := b.core.RemoveObject(ctx, b.address.Bucket, path.Join(b.address.Prefix, k), minio.RemoveObjectOptions{}); err != nil {
			return b.explain("remove", k, err)
		}
	}
	uploads, err := b.uploads(ctx, name+"/")
	for _, u := range uploads {
		if err == nil {
			err = b.core.AbortMultipartUpload(ctx, b.address.Bucket, u.Key, u.UploadID)
		}
	}
	return b.explain("remove", key, err)
}

// watch cancels a context when a transfer makes no progress.
type watch struct {
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

func newWatch(ctx context.Context) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &watch{time.AfterFunc(stallLimit, func() { cancel(errStalled) }), cancel}
}

// Stop ends the watch and releases the context.
func (w *watch) Stop() {
	w.timer.Stop()
	w.cancel(context.Canceled)
}

// download is the body of an answer.
type download struct {
	io.ReadCloser
	watch *watch
}

func (d *download) Read(p []byte) (int, error) {
	d.watch.timer.Reset(stallLimit)
	return d.ReadCloser.Read(p)
}

func (d *download) Close() error {
	d.watch.Stop()
	return d.ReadCloser.Close()
}
