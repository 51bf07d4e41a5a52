package telemetry

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
	"golang.org/x/term"
)

// Format is how log lines look.
type Format string

// The formats.
const (
	Auto Format = ""     // Human on a terminal, Text elsewhere
	Text Format = "text" // key=value
	JSON Format = "json" // an object a line
	// Human is short and coloured: "23:01:24 INF ready node=decode-1".
	Human Format = "human"
)

// LogOptions says what a log holds.
type LogOptions struct {
	Level   slog.Leveler // nil: info; a *slog.LevelVar can be changed later
	Format  Format
	NoColor bool   // of Human, as NO_COLOR asks
	Node    string // instance that writes: "decode-1"; first attribute of each line; "" for none
}

// NewLog makes a logger that writes a line at a time to w. It is safe for concurrent use.
func NewLog(w io.Writer, o LogOptions) *slog.Logger {
	if o.Level == nil {
		o.Level = slog.LevelInfo
	}
	if o.Format == Auto {
		o.Format = Text
		if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			o.Format = Human
		}
	}
	var h slog.Handler
	switch o.Format {
	case JSON:
		h = slog.NewJSONHandler(w, &slog.HandlerOptions{Level: o.Level})
	case Human:
		h = tint.NewTextHandler(w, &tint.Options{Level: o.Level, TimeFormat: time.TimeOnly, NoColor: o.NoColor})
	default:
		h = slog.NewTextHandler(w, &slog.HandlerOptions{Level: o.Level})
	}
	log := slog.New(h)
	if o.Node != "" {
		log = log.With("node", o.Node)
	}
	return log
}
