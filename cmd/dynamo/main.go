// Command dynamo checks, runs and compiles LLM inference graphs.
package main

import (
	"context"
	"os"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
)

func main() {
	os.Exit(cli.Run(context.Background(), app(env()), env()))
}

func env() cli.Env {
	return cli.Env{Args: os.Args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}
}
