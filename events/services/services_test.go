package services_test

import (
	"context"
	"errors"
	"testing"

	"codea1/events/services"
)

func TestGroupStopsTogether(t *testing.T) {
	broken := errors.New("broken")
	g, stop := services.NewGroup(t.Context())
	g.Go(func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	g.Go(func(context.Context) error { return broken })
	<-g.Done()
	for range 2 {
		if err := stop(); !errors.Is(err, broken) {
			t.Errorf("the group failed with %v, want %v", err, broken)
		}
	}
}

func TestStoppedServicesHaveNotFailed(t *testing.T) {
	g, stop := services.NewGroup(t.Context())
	g.Go(func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	if err := stop(); err != nil {
		t.Errorf("a stopped group failed: %v", err)
	}
	if g.Err() == nil {
		t.Error("a stopped group has no error")
	}
}
