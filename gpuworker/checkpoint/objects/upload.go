package objects

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"
)

// Put implements Store. A large file is sent in parts. S3 shows the object when all
// parts are there, and keeps the parts of a cut upload for the next try.
func (b *bucket) Put(ctx context.Context, key, file string) (err error) {
	name, err := b.name(key)
	if err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	stored, err := b.stat(ctx, key, name)
	if err == nil && stored == info.Size() {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if info.Size() > b.partBytes {
		return b.explain("upload", key, b.putParts(ctx, name, f, info.Size()))
	}
	sums, err := sumsOf(io.NewSectionReader(f, 0, info.Size()))
	if err != nil {
		return err
	}
	watched, watch := newWatch(ctx)
	defer watch.Stop()
	_, err = b.core.PutObject(watched, b.address.Bucket, name, &upload{io.NewSectionReader(f, 0, info.Size()), watch}, info.Size(),
		sums.md5(), sums.sha256(), minio.PutObjectOptions{DisableContentSha256: true})
	return b.explain("upload", key, err)
}

func (b *bucket) stat(ctx context.Context, key, name string) (int64, error) {
	watched, watch := newWatch(ctx)
	defer watch.Stop()
	info, err := b.core.StatObject(watched, b.address.Bucket, name, minio.StatObjectOptions{})
	return info.Size, b.explain("look up", key, err)
}

// putParts sends the parts that the server does not have, with several at a time.
func (b *bucket) putParts(ctx context.Context, name string, f *os.File, size int64) error {
	partBytes := max(b.partBytes, (size+maxParts-1)/maxParts)
	id, have, err := b.begunUpload(ctx, name)
	if err != nil {
		return err
	}
	parts := make([]minio.CompletePart, (size+partBytes-1)/partBytes)
	g, groupCtx := errgroup.WithContext(ctx)
	g.SetLimit(partsAtOnce)
	for i := range parts {
		g.Go(func() error {
			section := io.NewSectionReader(f, int64(i)*partBytes, min(partBytes, size-int64(i)*partBytes))
			sums, err := sumsOf(section)
			if err != nil {
				return err
			}
			if part := have[i+1]; part.Size == section.Size() && etag(part.ETag) == hex.EncodeToString(sums.MD5) {
				parts[i] = minio.CompletePart{PartNumber: i + 1, ETag: part.ETag}
				return nil
			}
			watched, watch := newWatch(groupCtx)
			defer watch.Stop()
			part, err := b.core.PutObjectPart(watched, b.address.Bucket, name, id, i+1,
				&upload{io.NewSectionReader(f, int64(i)*partBytes, section.Size()), watch}, section.Size(),
				minio.PutObjectPartOptions{Md5Base64: sums.md5(), Sha256Hex: sums.sha256(), DisableContentSha256: true})
			parts[i] = minio.CompletePart{PartNumber: i + 1, ETag: part.ETag}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	_, err = b.core.CompleteMultipartUpload(ctx, b.address.Bucket, name, id, parts, minio.PutObjectOptions{})
	return err
}

// begunUpload returns the upload of an object that was cut, with its parts by their
// numbers, or begins one.
func (b *bucket) begunUpload(ctx context.Context, name string) (string, map[int]minio.ObjectPart, error) {
	ctx, watch := newWatch(ctx)
	defer watch.Stop()
	uploads, err := b.uploads(ctx, name)
	if err != nil {
		return "", nil, err
	}
	for _, u := range uploads {
		if u.Key != name {
			continue
		}
		have := map[int]minio.ObjectPart{}
		for marker := 0; ; {
			page, err := b.core.ListObjectParts(ctx, b.address.Bucket, name, u.UploadID, marker, 1000)
			if err != nil {
				return "", nil, err
			}
			for _, part := range page.ObjectParts {
				have[part.PartNumber] = part
			}
			if !page.IsTruncated || page.NextPartNumberMarker <= marker {
				return u.UploadID, have, nil
			}
			marker = page.NextPartNumberMarker
		}
	}
	id, err := b.core.NewMultipartUpload(ctx, b.address.Bucket, name, minio.PutObjectOptions{})
	return id, nil, err
}

// uploads returns cut uploads of objects with names that begin with prefix.
func (b *bucket) uploads(ctx context.Context, prefix string) ([]minio.ObjectMultipartInfo, error) {
	page, err := b.core.ListMultipartUploads(ctx, b.address.Bucket, prefix, "", "", "", 1000)
	var answer minio.ErrorResponse
	if errors.As(err, &answer) && answer.Code == minio.NoSuchUpload {
		return nil, nil
	}
	return page.Uploads, err
}

func etag(quoted string) string { return strings.ToLower(strings.Trim(quoted, `"`)) }

// sums are those of a part. The server checks both. The signature of the request
// covers SHA-256, in place of the signed chunks that not every server reads, and the
// server names a part by its MD5.
type sums struct{ MD5, SHA256 []byte }

func sumsOf(r io.Reader) (sums, error) {
	m, s := md5.New(), sha256.New()
	_, err := io.Copy(io.MultiWriter(m, s), r)
	return sums{m.Sum(nil), s.Sum(nil)}, err
}

func (s *sums) md5() string    { return base64.StdEncoding.EncodeToString(s.MD5) }
func (s *sums) sha256() string { return hex.EncodeToString(s.SHA256) }

// upload is the body of a request.
type upload struct {
	io.Reader
	watch *watch
}

func (u *upload) Read(p []byte) (int, error) {
	u.watch.timer.Reset(stallLimit)
	return u.Reader.Read(p)
}
