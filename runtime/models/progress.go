package models

import (
	"context"
	"io"
	"time"
)

// meter reports progress, at most every 100 ms.
type meter struct {
	f    func(Progress)
	p    Progress
	last time.Time
}

func (c *Cache) meter(p Progress) *meter {
	p.Start = p.Done
	m := &meter{f: c.o.Progress, p: p, last: time.Now()}
	m.f(p)
	return m
}

func (m *meter) add(n int) {
	m.p.Done += int64(n)
	if now := time.Now(); now.Sub(m.last) >= 100*time.Millisecond {
		m.last = now
		m.f(m.p)
	}
}

func (m *meter) end() { m.f(m.p) }

// meterReader counts what is read, and ends when ctx does.
type meterReader struct {
	ctx context.Context
	r   io.Reader
	m   *meter
}

func (r *meterReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.r.Read(p)
	r.m.add(n)
	return n, err
}
