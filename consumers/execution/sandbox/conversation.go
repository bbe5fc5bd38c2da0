package sandbox

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// conversation is the pool's side of one child's job socket.
type conversation struct {
	ctx    context.Context
	socket *jobSocket
	in     *bufio.Reader
	most   int // bytes of one frame's text
	time   *jobTime
	large  []byte // a frame that does not fit into in and has come in part
	have   int    // bytes of large that have come
}

func (c *conversation) send(j Job) error {
	if c.ctx.Err() != nil {
		return errEnded
	}
	err := c.socket.send(c.ctx, j.encode())
	if c.ctx.Err() != nil {
		return errEnded
	}
	return err
}

// next reads a frame. A frame that comes late, never, or in a wrong form makes a
// reply, too.
func (c *conversation) next(deadline time.Time) (Reply, error) {
	if err := c.socket.setReadDeadline(deadline); err != nil {
		return Reply{}, err
	}
	// The deadline is set first: a cancellation before that shows here, and a later
	// one moves the deadline.
	if c.ctx.Err() != nil {
		return Reply{}, errEnded
	}
	r, err := c.frame()
	switch {
	case err == nil:
		return r, nil
	case c.ctx.Err() != nil:
		return Reply{}, errEnded
	case errors.Is(err, os.ErrDeadlineExceeded):
		return Reply{Tag: TagOvertime}, nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, errForged):
		return Reply{Tag: TagMissing}, nil
	}
	return Reply{}, err
}

// nextInTime reads the next frame within the time of one item.
func (c *conversation) nextInTime() (Reply, error) {
	c.time.begin()
	for {
		r, err := c.next(c.time.limit())
		if err != nil || r.Tag != TagOvertime || !c.time.extend() {
			r.Took = c.time.took()
			return r, err
		}
	}
}

// frame reads a frame. After a deadline it can be called again and goes on with
// the same frame.
func (c *conversation) frame() (Reply, error) {
	if c.large == nil {
		header, err := c.in.Peek(frameHeader)
		if err != nil {
			return Reply{}, err
		}
		tag, size := header[0], binary.LittleEndian.Uint32(header[1:])
		if tag <= TagOvertime || size > uint32(c.most) {
			return Reply{}, errForged
		}
		if whole := frameHeader + int(size); whole <= c.in.Size() {
			frame, err := c.in.Peek(whole)
			if err != nil {
				return Reply{}, err
			}
			r := Reply{Tag: tag, Text: string(frame[frameHeader:])}
			_, err = c.in.Discard(whole)
			return r, err
		}
		c.large, c.have = make([]byte, frameHeader+int(size)), 0
	}
	n, err := io.ReadFull(c.in, c.large[c.have:])
	if c.have += n; err != nil {
		return Reply{}, err
	}
	r := Reply{Tag: c.large[0], Text: string(c.large[frameHeader:])}
	c.large = nil
	return r, nil
}
