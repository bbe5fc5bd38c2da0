package eventlog_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"codea1/events"
	"codea1/replay/eventlog"
)

func ExampleLog() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	l, err := eventlog.Open(eventlog.Dir(dir), eventlog.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = l.Close() }()

	beat := events.New("r1", "execution-0", "execution-0", time.Now(), &events.StageHeartbeat{Stage: "execution", Beat: 1})
	message, err := events.Encode(beat)
	if err != nil {
		log.Fatal(err)
	}
	for range 2 { // the bus delivers it twice
		appended, err := l.Append(context.Background(), []eventlog.Incoming{{Message: message, Position: "17"}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(appended.Messages), "new,", appended.Duplicates, "known")
	}
	for record, err := range l.Read(context.Background(), eventlog.ReadOptions{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(record.Seq, record.Message.Type, record.Message.Group)
	}
	// Output:
	// 1 new, 0 known
	// 0 new, 1 known
	// 1 stage.heartbeat execution-0
}
