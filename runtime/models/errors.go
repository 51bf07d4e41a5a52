package models

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/dynamograph/dynamo/graph/model/gguf"
)

// Error says why a model could not be had, what was tried, and what to do.
type Error struct {
	Model string // name for clients
	Msg   string
	Tries []Try
	Hint  string
}

// Try is a source that was tried.
type Try struct {
	Source string // as written, without secrets
	Where  string // what was contacted last, if that is not the source itself
	Err    error
}

// Error lists everything, a line each.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "model %q: %s", e.Model, e.Msg)
	for _, t := range e.Tries {
		b.WriteString("\n  " + t.Source + ": ")
		if t.Where != "" && t.Where != t.Source {
			b.WriteString(t.Where + ": ")
		}
		b.WriteString(t.Err.Error())
	}
	if e.Hint != "" {
		b.WriteString("\n" + e.Hint)
	}
	return b.String()
}

// Unwrap gives the errors of the tries.
func (e *Error) Unwrap() []error {
	out := make([]error, len(e.Tries))
	for i, t := range e.Tries {
		out[i] = t.Err
	}
	return out
}

// Errors that a caller may branch on, found in *Error by errors.Is.
var (
	ErrWrongHash = errors.New("wrong sha256")
	ErrDiskFull  = errors.New("disk full")
	ErrCache     = errors.New("cannot write the cache")
	ErrNotFound  = errors.New("not found")
	ErrConnect   = errors.New("cannot connect")
)

// hashError is a file with other bytes than pinned.
type hashError struct{ got, want, by string }

func (e *hashError) Error() string {
	return fmt.Sprintf("sha256 is %s, %s pins %s", e.got, e.by, e.want)
}
func (e *hashError) Is(target error) bool { return target == ErrWrongHash }

// unusable is a file that has the right bytes, or whose bytes nobody pinned, but is not a model that can be read.
type unusable struct {
	err   error
	final bool // the bytes are those that the graph pins
}

func (e *unusable) Error() string { return "is not a usable model file: " + e.err.Error() }
func (e *unusable) Unwrap() error { return e.err }

// cacheError marks a failure to write the cache: no other source helps.
func cacheError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w", ErrDiskFull, err)
	}
	return fmt.Errorf("%w: %w", ErrCache, err)
}

// final reports whether no other source can help.
func final(err error) bool {
	var u *unusable
	return errors.Is(err, ErrDiskFull) || errors.Is(err, ErrCache) || errors.As(err, &u) && u.final
}

// explain wraps what went wrong for the user.
func (j *job) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := &Error{Model: j.name, Tries: j.tries}
	if !errors.Is(err, errAbsent) {
		e.Tries = append(e.Tries, Try{Source: j.sources[0].Redacted(), Err: err})
	}
	if len(e.Tries) == 1 {
		e.Msg = "its source does not work:"
	} else {
		e.Msg = fmt.Sprintf("none of its %d sources works:", len(e.Tries))
	}
	last := e.Tries[len(e.Tries)-1].Err
	var bad *gguf.Error
	switch {
	case errors.Is(last, ErrDiskFull):
		e.Hint = "free space in " + j.o.CacheDir + " or choose another cache folder"
	case errors.Is(last, ErrCache):
		e.Hint = "make " + j.o.CacheDir + " writable or choose another cache folder"
	case errors.As(last, &bad) && bad.Offset < 8:
		e.Hint = "name a GGUF file (version 2 or 3)"
	case errors.As(last, &bad):
		e.Hint = "the file is damaged or cut off: fetch it again, and compare its sha256 with the publisher's"
	case errors.Is(e, ErrWrongHash):
		e.Hint = "a file is not the one that the graph pins: compare with the publisher's sha256, then mend the pin or the source"
	case errors.Is(e, ErrConnect):
		e.Hint = `check the network and the proxy settings, or copy the file to this machine and add "file:PATH" to the model's sources`
	case j.all(fs.ErrNotExist):
		e.Hint = "copy the file there, or add another source: pypi:, https:// or hf:"
	default:
		e.Hint = `mend a source, or copy the file to this machine and add "file:PATH" to the model's sources`
	}
	return e
}

func (j *job) all(target error) bool {
	for _, t := range j.tries {
		if !errors.Is(t.Err, target) {
			return false
		}
	}
	return len(j.tries) > 0
}
