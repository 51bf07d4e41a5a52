package external

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/dynamograph/dynamo/nodes/nodetest"
)

func TestConformance(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			<-r.Context().Done()
		}
	}))
	defer s.Close()
	nodetest.Run(t, "external", nodetest.Options{Config: fmt.Sprintf(`{"url":%q}`, s.URL+"/v1")})
}
