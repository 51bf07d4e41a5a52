package models_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dynamograph/dynamo/graph/model/gguf/gguftest"
	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/runtime/models"
)

func ExampleCache_Get() {
	dir, err := os.MkdirTemp("", "models-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "tiny.gguf")
	weights := gguftest.Build([]gguftest.KV{gguftest.K("general.architecture", "llama")}, nil)
	if err := os.WriteFile(path, weights, 0o644); err != nil {
		fmt.Println(err)
		return
	}
	c := models.New(models.Options{CacheDir: filepath.Join(dir, "cache")})
	m := plan.Model{Names: []string{"tiny"}, Sources: []string{"file:" + path}}
	f, err := c.Get(context.Background(), m)
	fmt.Println(filepath.Base(f.Path), f.Size, f.Facts.Architecture, f.SHA256[:8], err)

	m.SHA256 = "0000000000000000000000000000000000000000000000000000000000000000"
	_, err = c.Get(context.Background(), m)
	fmt.Println(err != nil)
	// Output:
	// tiny.gguf 96 llama 2de0a95b <nil>
	// true
}
