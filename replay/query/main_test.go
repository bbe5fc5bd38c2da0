package query

import (
	"testing"

	"codea1/replay/internal/replaytest"
)

func TestMain(m *testing.M) { replaytest.Main(m) }
