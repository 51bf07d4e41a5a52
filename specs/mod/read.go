package mod

import (
	"context"

	"cuelang.org/go/mod/module"
)

// Fetch brings a module into CUE's cache and returns where it is.
func (c *Client) Fetch(ctx context.Context, v module.Version) (module.SourceLoc, error) {
	return c.fetch(ctx, v)
}

// Require lists what a module depends on.
func (c *Client) Require(ctx context.Context, v module.Version) ([]module.Version, error) {
	return c.require(ctx, v)
}
