package frontend

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/flow"
)

// StatusOf is the HTTP status of a class of failure.
func StatusOf(c flow.Class) int {
	switch c {
	case flow.InvalidRequest:
		return http.StatusBadRequest
	case flow.NotFound:
		return http.StatusNotFound
	case flow.PayloadTooLarge:
		return http.StatusRequestEntityTooLarge
	case flow.CapacityExhausted:
		return http.StatusTooManyRequests
	case flow.Cancelled:
		return 499
	case flow.Unavailable:
		return http.StatusServiceUnavailable
	case flow.BackendProtocol:
		return http.StatusBadGateway
	case flow.DeadlineExceeded:
		return http.StatusGatewayTimeout
	case flow.NotImplemented:
		return http.StatusNotImplemented
	}
	return http.StatusInternalServerError
}

// apiError is OpenAI's error object.
type apiError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func errorBody(status int, code, param, msg string) []byte {
	e := apiError{Message: msg}
	switch {
	case status == http.StatusTooManyRequests:
		e.Type = "rate_limit_error"
	case status < 500:
		e.Type = "invalid_request_error"
	default:
		e.Type = "server_error"
	}
	if param != "" {
		e.Param = &param
	}
	if code != "" {
		e.Code = &code
	}
	b, err := json.Marshal(map[string]apiError{"error": e})
	if err != nil {
		return []byte(`{"error":{"message":"internal error","type":"server_error","param":null,"code":null}}`)
	}
	return b
}

// codeOf is the code that OpenAI's clients know, or our reason.
func codeOf(e *flow.Error) string {
	switch {
	case strings.HasSuffix(e.Reason, ".context_length"):
		return "context_length_exceeded"
	case e.Reason == "frontend.unknown_model":
		return "model_not_found"
	}
	return e.Reason
}

// describe gives an error's status and body. What is not for the client (the cause) is not in it.
func describe(err error) (status int, body []byte) {
	e := flow.AsError(err)
	msg := e.Msg
	if msg == "" {
		msg = e.Reason
	}
	status = StatusOf(e.Class)
	return status, errorBody(status, codeOf(e), e.Param, msg)
}

// fail sends err as an error object, if nothing was sent yet, and logs what is our fault.
func (x *exchange) fail(err error) {
	e := flow.AsError(err)
	status, body := describe(e)
	x.err = e
	x.log(status, e)
	if e.Class == flow.Cancelled && x.r.Context().Err() != nil {
		return // nobody listens
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		x.w.Header().Set("Retry-After", strconv.Itoa(int(max((e.RetryAfter+time.Second-1)/time.Second, 1))))
	}
	x.send(status, append(body, '\n'))
}

func (x *exchange) log(status int, e *flow.Error) {
	log := x.f.host.Log().Debug
	if status >= 500 {
		log = x.f.host.Log().Warn
	}
	log("request failed", "request", x.requestID(), "route", x.route, "status", status, "reason", e.Reason,
		"instance", e.Instance, "error", e)
}

func (x *exchange) refuse(status int, code, param, msg string) {
	x.send(status, append(errorBody(status, code, param, msg), '\n'))
}

// known reports whether a model is served. A graph without models (its engines are mocks) takes any name.
func (f *Frontend) known(name string) bool {
	if _, ok := f.models[name]; ok {
		return true
	}
	names, others := f.names()
	_, ok := slices.BinarySearch(names, name)
	return ok || others || len(names) == 0 // nobody is there yet who could say
}

func (f *Frontend) unknownModel(name string) *flow.Error {
	names, _ := f.names()
	hint := diag.Suggest(name, names)
	if hint == "" && len(names) > 0 {
		hint = "known: " + strings.Join(names[:min(len(names), 10)], ", ")
	}
	e := flow.Errorf(flow.NotFound, "frontend.unknown_model", "the model %q does not exist; %s", clip(name), hint)
	e.Param = "model"
	return e
}

// bad is a request that can never succeed.
func bad(param, format string, args ...any) *flow.Error {
	return &flow.Error{Class: flow.InvalidRequest, Reason: "request.invalid", Param: param, Msg: fmt.Sprintf(format, args...)}
}

// blame names the field of the request where an engine refuses the form of the output: it does not know in which field that came.
func (c *call) blame(err error) error {
	e := flow.AsError(err)
	if !strings.HasPrefix(e.Reason, "constraint.") && e.Param != "constraint" {
		return err
	}
	named := *e
	if named.Param = c.constraint; c.constraint == "" {
		named.Param = "tools" // which make forms of their own
	}
	return &named
}
