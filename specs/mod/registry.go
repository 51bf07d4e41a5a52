package mod

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"cuelabs.dev/go/oci/ociregistry"
	"cuelang.org/go/mod/modconfig"
	"cuelang.org/go/mod/modregistry"
	"cuelang.org/go/mod/module"
)

// Options says how registries are reached.
type Options struct {
	// Env is the environment that CUE's own settings are read from, as "KEY=VALUE": CUE_REGISTRY, CUE_CACHE_DIR, CUE_CONFIG_DIR, HOME, …
	Env []string
	// Progress, where set, is told how much of a transfer is done. It may be called from several goroutines.
	Progress func(Progress)
}

// Progress is how far a transfer is.
type Progress struct {
	Host        string // of the registry
	Push        bool   // else pull
	Done, Total int64  // bytes; Total is 0 where it is not known
}

// Client reaches the registries that CUE_REGISTRY names. It is safe for concurrent use.
type Client struct {
	resolver *modconfig.Resolver
	cache    modconfig.CachedRegistry
	direct   *modregistry.Client
	refusals *refusals
}

// RegistryError says that a registry could not be asked.
type RegistryError struct {
	Host   string // "" where the module has no registry
	Module string
	Hint   string
	Err    error
}

// Error names the registry, the module, the cause and the way out.
func (e *RegistryError) Error() string {
	return fmt.Sprintf("registry %s: %s: %s; %s", e.Host, e.Module, oneLine(e.Err), e.Hint)
}

// Unwrap returns the cause.
func (e *RegistryError) Unwrap() error { return e.Err }

// NewClient reads CUE's settings. It contacts nobody.
func NewClient(o Options) (*Client, error) {
	if o.Env == nil {
		o.Env = []string{} // nil would mean this process's
	}
	refused := &refusals{at: map[string]bool{}}
	cfg := &modconfig.Config{Env: o.Env, ClientType: "dynamo", Transport: transport{http.DefaultTransport, o.Progress, refused}}
	res, err := modconfig.NewResolver(cfg)
	if err != nil {
		return nil, problem("see `cue help registryconfig`", "CUE_REGISTRY: %s", oneLine(err))
	}
	reg, err := modconfig.NewRegistry(cfg)
	if err != nil {
		return nil, fmt.Errorf("cache of modules: %s", oneLine(err))
	}
	return &Client{resolver: res, cache: reg, direct: modregistry.NewClientWithResolver(res), refusals: refused}, nil
}

// Host is the registry of a module: "127.0.0.1:5000"; "" where it has none.
func (c *Client) Host(path string) string {
	base, _, _ := strings.Cut(path, "@")
	loc, ok := c.resolver.ResolveToLocation(base, "")
	if !ok {
		return ""
	}
	return loc.Host
}

// failed makes an error of what a registry answered to a request for mod.
func (c *Client) failed(mod string, err error) error {
	host := c.Host(mod)
	var status interface{ StatusCode() int }
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case host == "":
		return c.none(mod)
	case errors.Is(err, ociregistry.ErrUnauthorized), errors.Is(err, ociregistry.ErrDenied):
		return denied(host, mod)
	case errors.As(err, &status):
		if n := status.StatusCode(); n == http.StatusUnauthorized || n == http.StatusForbidden {
			return denied(host, mod)
		} else if text := http.StatusText(n); text != "" && n >= 500 {
			err = fmt.Errorf("it answers %d %s", n, text)
		}
	}
	return &RegistryError{Host: host, Module: mod, Err: cause(err), Hint: "is it up, and does CUE_REGISTRY name the right one?"}
}

// none is the error for a module that has no registry.
func (c *Client) none(mod string) error {
	return &RegistryError{Host: "(none)", Module: mod, Err: modregistry.ErrRegistryNotFound, Hint: "set CUE_REGISTRY"}
}

func denied(host, mod string) error {
	return &RegistryError{Host: host, Module: mod, Err: errors.New("access denied"),
		Hint: "log in with `cue login " + host + "` or `docker login " + host + "`; some registries also say this of what they do not have"}
}

// absent is the error for what a registry does not have, or does not show.
func (c *Client) absent(mod string) error {
	_, path, ok := strings.Cut(mod, " of ") // "version of a.example/b"
	if !ok {
		path = mod
	}
	host := c.Host(path)
	if c.refusals.any(host) {
		return denied(host, mod)
	}
	return problem("", "registry %s has no %s", host, mod)
}

// versions lists what a registry has of a module, the newest last; none is no error. path may lack the major version: then all count.
func (c *Client) versions(ctx context.Context, path string) ([]string, error) {
	if c.Host(path) == "" {
		return nil, c.none(path)
	}
	vs, err := c.direct.ModuleVersions(ctx, path)
	if errors.Is(err, modregistry.ErrNotFound) {
		return nil, nil
	}
	return vs, c.failed(path, err)
}

// latest picks the newest version that is no prerelease, else the newest; "" of none.
func latest(vs []string) string {
	for _, v := range slices.Backward(vs) {
		if !strings.ContainsAny(v, "-") {
			return v
		}
	}
	if len(vs) > 0 {
		return vs[len(vs)-1]
	}
	return ""
}

// fetch brings a module into CUE's cache.
func (c *Client) fetch(ctx context.Context, v module.Version) (module.SourceLoc, error) {
	loc, err := c.cache.Fetch(ctx, v)
	return loc, c.got(v, err)
}

// require lists what a module depends on.
func (c *Client) require(ctx context.Context, v module.Version) ([]module.Version, error) {
	f, err := c.cache.ModFile(ctx, v)
	if err != nil {
		return nil, c.got(v, err)
	}
	return f.DepVersions(), nil
}

// got makes an error of what came of asking for v.
func (c *Client) got(v module.Version, err error) error {
	switch {
	case err == nil:
		return nil
	case c.Host(v.BasePath()) == "":
		return c.none(v.String())
	case errors.Is(err, modregistry.ErrNotFound):
		return c.absent(v.String())
	}
	return c.failed(v.String(), err)
}
