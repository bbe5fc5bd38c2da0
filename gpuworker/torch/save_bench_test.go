package torch

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"codea1/events"
	"codea1/gpuworker"
	"codea1/gpuworker/checkpoint"
	"codea1/gpuworker/tiny"
)

// BenchmarkVersion writes versions of a model of 30 million parameters with its
// optimizer's state, as a trainer does: the child writes the files, the trainer adds
// their sums, and all of it is on disk at the end.
func BenchmarkVersion(b *testing.B) {
	large := shape
	large.Hidden, large.Layers, large.HeadSize, large.MLP, large.InitStd = 640, 6, 160, 1920, 0.02
	model, err := tiny.New(large, smallTokenizer(b), 1)
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	if err := model.Save(b.Context(), dir); err != nil {
		b.Fatal(err)
	}
	e := open(b, Options{Dir: dir})
	if err := e.Load(b.Context(), dir); err != nil {
		b.Fatal(err)
	}
	sequence := gpuworker.Sequence{Prompt: []int32{1, 2}, Tokens: []int32{3, 4}}
	config := gpuworker.UpdateConfig{Loss: gpuworker.LossSFT, Temperature: 1, LearningRate: 1e-4, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8}
	if _, err := e.Update(b.Context(), []gpuworker.Sequence{sequence}, config); err != nil {
		b.Fatal(err)
	}
	folder := checkpoint.Folder{Path: b.TempDir(), Run: "r", Role: events.RoleCode}
	var child time.Duration
	version := 0
	for b.Loop() {
		version++
		record := &checkpoint.Record{Format: checkpoint.Format, Run: "r", Role: events.RoleCode, Version: version, Step: version}
		err := folder.Write(b.Context(), record, func(dir string) error {
			defer func(began time.Time) { child += time.Since(began) }(time.Now())
			return e.Save(b.Context(), dir)
		})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := folder.Retain(1, 0); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	var bytes int64
	err = filepath.WalkDir(folder.Dir(version), func(_ string, e fs.DirEntry, err error) error {
		if info, _ := e.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(fmt.Errorf("sizes: %w", err))
	}
	b.SetBytes(bytes)
	b.ReportMetric(float64(child.Milliseconds())/float64(b.N), "child-ms/op")
}
