package execution

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
	large  []byte // a frame of which a part has come, too large for in
	have   int    // of large, bytes
}

func (c *conversation) send(j job) error {
	if c.ctx.Err() != nil {
		return errEnded
	}
	err := c.socket.send(c.ctx, j.encode())
	if c.ctx.Err() != nil {
		return errEnded
	}
	return err
}

// next reads a frame. A frame that does not come in time, or not at all, or is
// no frame, is a reply too.
func (c *conversation) next(deadline time.Time) (reply, error) {
	if err := c.socket.setReadDeadline(deadline); err != nil {
		return reply{}, err
	}
	// After the deadline is set: a cancellation that came first is seen here,
	// one that comes later moves the deadline.
	if c.ctx.Err() != nil {
		return reply{}, errEnded
	}
	r, err := c.frame()
	switch {
	case err == nil:
		return r, nil
	case c.ctx.Err() != nil:
		return reply{}, errEnded
	case errors.Is(err, os.ErrDeadlineExceeded):
		return reply{tag: tagOvertime}, nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, errForged):
		return reply{tag: tagMissing}, nil
	}
	return reply{}, err
}

// nextInTime reads the frame of what the child does next, which has the time of
// one item for it.
func (c *conversation) nextInTime() (reply, error) {
	c.time.begin()
	for {
		r, err := c.next(c.time.limit())
		if err != nil || r.tag != tagOvertime || !c.time.prolong() {
			return r, err
		}
	}
}

// frame reads a frame. After an error that is no more than a deadline, it can be
// called again.
func (c *conversation) frame() (reply, error) {
	if c.large == nil {
		header, err := c.in.Peek(frameHeader)
		if err != nil {
			return reply{}, err
		}
		tag, size := header[0], binary.LittleEndian.Uint32(header[1:])
		if tag <= tagOvertime || size > uint32(c.most) {
			return reply{}, errForged
		}
		if whole := frameHeader + int(size); whole <= c.in.Size() {
			frame, err := c.in.Peek(whole)
			if err != nil {
				return reply{}, err
			}
			r := reply{tag, string(frame[frameHeader:])}
			_, err = c.in.Discard(whole)
			return r, err
		}
		c.large, c.have = make([]byte, frameHeader+int(size)), 0
	}
	n, err := io.ReadFull(c.in, c.large[c.have:])
	if c.have += n; err != nil {
		return reply{}, err
	}
	r := reply{c.large[0], string(c.large[frameHeader:])}
	c.large = nil
	return r, nil
}
