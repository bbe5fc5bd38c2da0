//go:build unix

package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"codea1/consumers/rewards"
	"codea1/events"
	"codea1/events/natsbus"
	"codea1/events/natsbus/natstest"
	"codea1/events/process"
	"codea1/events/rundir"
	"codea1/events/services"
	"codea1/events/stage"
	"codea1/gpuworker"
	"codea1/replay/eventlog"
)

// BenchmarkScale runs a training of groups of real size on a cluster of three NATS
// servers that all store each event, with up to 1,000 replicas of the worker stages,
// without models and sandbox. Each replica has a connection of its own; everything
// shares the cores of this machine. One operation is a step of 256 groups. It fails
// if a group is lost or has two results, and reports:
//
//	groups/s      groups through all stages per second of wall time
//	cpu-ms/group  CPU time of the stages and of the three servers
//	KB/group      bytes of a group in the stream of each server
//	messages/group, heartbeats/s, consumers
func BenchmarkScale(b *testing.B) {
	for _, replicas := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("replicas=%d", replicas), func(b *testing.B) { benchmarkScale(b, replicas) })
	}
}

func benchmarkScale(b *testing.B, replicas int) {
	sizes := benchSizes
	sizes.Steps = b.N
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	cluster := natstest.StartCluster(b)
	p := newPipelineOn(b, cluster.Connect(b, natsbus.Config{}), sizes)
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	g, stop := services.NewGroup(ctx)
	recorder, err := eventlog.NewRecorder(p.bus, p.log, eventlog.RecorderConfig{Run: pipelineRun, OnAppend: p.appended})
	if err != nil {
		b.Fatal(err)
	}
	g.Go(recorder.Run)
	for n := range replicas {
		p.startReplica(b, g, cluster.Connect(b, natsbus.Config{}), n)
	}
	p.startTrainers(b, g)
	benchCompletions() // made once
	cpu := processTime(b)
	b.ResetTimer()
	p.begin(ctx, b)
	select {
	case <-p.finished:
	case <-g.Done():
		b.Fatal(stop())
	}
	b.StopTimer()
	cpu = processTime(b) - cpu
	messages, size, consumers := cluster.Stored(pipelineRun)
	if err := stop(); err != nil {
		b.Fatal(err)
	}
	groups := float64(b.N * sizes.ProblemsPerStep)
	if n := p.rewarded.Load(); n != int64(groups) {
		b.Fatalf("%d groups were rewarded, want %v", n, groups)
	}
	logged, heartbeats := uint64(0), uint64(0)
	for record, err := range p.log.Read(b.Context(), eventlog.ReadOptions{}) {
		if err != nil {
			b.Fatal(err)
		}
		if logged++; record.Message.Type == events.TypeStageHeartbeat {
			heartbeats++
		}
	}
	// A group is posed, answered, tested, executed and rewarded; a step makes two versions.
	if want := 5*uint64(groups) + 2*uint64(b.N) + 1; logged-heartbeats != want {
		b.Errorf("the run has %d events besides heartbeats, want %d", logged-heartbeats, want)
	}
	b.ReportMetric(groups/b.Elapsed().Seconds(), "groups/s")
	b.ReportMetric(cpu.Seconds()*1e3/groups, "cpu-ms/group")
	b.ReportMetric(float64(size)/1e3/groups, "KB/group")
	b.ReportMetric(float64(messages)/groups, "messages/group")
	b.ReportMetric(float64(heartbeats)/b.Elapsed().Seconds(), "heartbeats/s")
	b.ReportMetric(float64(consumers), "consumers")
}

// startReplica starts the n-th replica, of the stages in turn. It has no outbox and no
// metrics.
func (p *pipeline) startReplica(b *testing.B, g *services.Group, bus *natsbus.Bus, n int) {
	config := stage.Config{
		Bus: bus, Run: pipelineRun, Instance: fmt.Sprint(n), AckWait: 10 * pipelineAckWait, HeartbeatEvery: process.HeartbeatEvery, Concurrency: 1,
	}
	switch n % 4 {
	case 0, 1:
		role := []events.Role{events.RoleCode, events.RoleTest}[n%4]
		policy, err := gpuworker.NewFollower(gpuworker.FollowerConfig{
			Bus: bus, Run: pipelineRun, Role: role, Sampler: nullEngine{}, Checkpoints: rundir.Checkpoints(p.dir, role),
		})
		if err != nil {
			b.Fatal(err)
		}
		rollout, err := gpuworker.NewRollout(gpuworker.RolloutConfig{Role: role, Policy: policy, Source: "rollout-" + fmt.Sprint(n)})
		if err != nil {
			b.Fatal(err)
		}
		g.Go(policy.Run)
		config.Name, config.Types, config.TextsOnly = events.RolloutStage(role).Name, []events.Type{rollout.Consumes()}, true
		config.Handler, config.Batch = rollout.Handle, 1
	case 2:
		config.Name, config.Types, config.TextsOnly, config.Handler = events.StageExecution, []events.Type{events.TypeTestsSampled}, true, stage.Each(executeNothing)
	default:
		recipe, err := rewards.New("a1", 0.5)
		if err != nil {
			b.Fatal(err)
		}
		rewarder := &rewards.Handler{Recipe: recipe, Source: "rewards-" + fmt.Sprint(n), Now: time.Now}
		config.Name, config.Types, config.Handler = events.StageRewards, []events.Type{events.TypeCodeExecuted}, stage.Each(rewarder.Handle)
	}
	s, err := stage.New(config)
	if err != nil {
		b.Fatal(err)
	}
	g.Go(s.Run)
}

// BenchmarkClusterStores publishes the five events of groups of real size to a cluster
// of three NATS servers that all store each event, as fast as they take them, while a
// reader follows. There are no stages: it is the limit that a cluster on this machine
// sets to a run. One operation is a group. It reports:
//
//	groups/s      groups stored by all servers and read once
//	MB/s          bytes of the events
//	cpu-ms/group  CPU time of the three servers, the publishers and the reader
func BenchmarkClusterStores(b *testing.B) {
	const run, publishers = "limit", 24
	samples := groupMessages(b)
	cluster := natstest.StartCluster(b)
	reading := cluster.Connect(b, natsbus.Config{})
	if err := reading.EnsureStream(b.Context(), run); err != nil {
		b.Fatal(err)
	}
	reader, err := reading.Read(b.Context(), events.ReadConfig{Run: run, From: events.Start})
	if err != nil {
		b.Fatal(err)
	}
	defer reader.Close()
	var buses []*natsbus.Bus
	for range publishers {
		buses = append(buses, cluster.Connect(b, natsbus.Config{}))
	}
	cpu, size := processTime(b), 0
	for i := range samples {
		size += len(samples[i].Data)
	}
	b.ResetTimer()
	g, ctx := errgroup.WithContext(b.Context())
	for n, bus := range buses {
		g.Go(func() error {
			for group := n; group < b.N; group += publishers {
				for i, m := range samples {
					m.Run, m.Group = run, fmt.Sprintf("s%06d-q%04d", group/10_000+1, group%10_000)
					m.ID = fmt.Sprintf("%024x%08x", group, i)
					if err := bus.Publish(ctx, m); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	g.Go(func() error {
		for range b.N * len(samples) {
			if _, _, err := reader.Next(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	seconds := b.Elapsed().Seconds()
	b.ReportMetric(float64(b.N)/seconds, "groups/s")
	b.ReportMetric(float64(b.N*size)/1e6/seconds, "MB/s")
	b.ReportMetric((processTime(b)-cpu).Seconds()*1e3/float64(b.N), "cpu-ms/group")
}

// groupMessages returns the events of a group of real size.
func groupMessages(b *testing.B) []events.Message {
	sizes := benchSizes
	sizes.Steps, sizes.ProblemsPerStep = 1, 1
	p := newPipeline(b, sizes)
	p.train(b)
	var out []events.Message
	for record, err := range p.log.Read(b.Context(), eventlog.ReadOptions{}) {
		if err != nil {
			b.Fatal(err)
		}
		if strings.HasPrefix(record.Message.Group, "s000001-") {
			out = append(out, record.Message)
		}
	}
	if len(out) != 5 {
		b.Fatalf("the group has %d events", len(out))
	}
	return out
}
