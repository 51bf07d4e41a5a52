package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/dynamograph/dynamo/runtime/models"
)

// isTerminal reports whether w is a terminal that a person may look at.
func (p *program) isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && p.Getenv("TERM") != "dumb"
}

// color reports whether findings are coloured: on a terminal, unless NO_COLOR is set.
func (p *program) color() bool { return p.isTerminal(p.Stderr) && p.Getenv("NO_COLOR") == "" }

// progress shows how far a model's download is: a bar on a terminal, else a line when a step begins and each five seconds.
func (p *program) progress() func(models.Progress) {
	tty := p.isTerminal(p.Stderr)
	var mu sync.Mutex // several models may come at once
	var key string
	var began, printed time.Time
	return func(m models.Progress) {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		fresh := key != m.Source+m.Step
		if fresh {
			if tty && key != "" {
				fmt.Fprintln(p.Stderr)
			}
			key, began = m.Source+m.Step, now
		}
		done := m.Total > 0 && m.Done >= m.Total
		if !tty && !fresh && !done && now.Sub(printed) < 5*time.Second {
			return
		}
		local := m.Step == "verify" || m.Step == "extract"
		if !tty && local && now.Sub(began) < time.Second {
			return // done before anybody asks
		}
		printed = now
		text := fmt.Sprintf("%s: %s", m.Step, m.Source)
		if m.Done > 0 || m.Total > 0 {
			switch {
			case m.Total == 0:
				text += ", " + size(m.Done)
			case m.Done == 0:
				text += ", " + size(m.Total)
			case done:
				text += ", " + size(m.Total) + " done"
			default:
				text += ", " + size(m.Done) + " of " + size(m.Total)
			}
			if s := now.Sub(began).Seconds(); s > 0.5 {
				rate := float64(m.Done-m.Start) / s
				text += fmt.Sprintf(", %s/s", size(int64(rate)))
				if m.Total > m.Done && rate > 0 {
					text += fmt.Sprintf(", %.0f s left", float64(m.Total-m.Done)/rate)
				}
			}
		}
		if !tty {
			fmt.Fprintln(p.Stderr, text)
			return
		}
		bar := ""
		if m.Total > 0 {
			const width = 24
			n := int(width * m.Done / m.Total)
			bar = "[" + strings.Repeat("=", n) + strings.Repeat(" ", width-n) + "] "
		}
		fmt.Fprintf(p.Stderr, "\r\x1b[K%s%s", bar, text)
		if done {
			fmt.Fprintln(p.Stderr)
			key = ""
		}
	}
}
