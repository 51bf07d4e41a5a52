package throttle_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamograph/dynamo/nodes/throttle"
)

func TestPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l throttle.Throttle
		for i, c := range []struct {
			after      time.Duration
			key        string
			ok         bool
			suppressed int
		}{
			{0, "full", true, 0},
			{0, "full", false, 0},
			{0, "lost", true, 0}, // another thing
			{999 * time.Millisecond, "full", false, 0},
			{time.Millisecond, "full", true, 2},
			{0, "full", false, 0},
			{time.Hour, "full", true, 1},
			{time.Hour, "full", true, 0},
		} {
			time.Sleep(c.after)
			if n, ok := l.Pass(c.key); ok != c.ok || n != c.suppressed {
				t.Errorf("step %d: %d %v, want %d %v", i, n, ok, c.suppressed, c.ok)
			}
		}
	})
}

// Keys that somebody invents do not fill the memory.
func TestManyKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l throttle.Throttle
		for i := range 1000 {
			l.Pass(fmt.Sprint(i))
			time.Sleep(time.Microsecond)
		}
		if _, ok := l.Pass("999"); ok {
			t.Error("the youngest was forgotten")
		}
		if _, ok := l.Pass("0"); !ok {
			t.Error("the oldest is still known")
		}
	})
}

func ExampleThrottle() {
	var l throttle.Throttle
	for range 1000 {
		if suppressed, ok := l.Pass("queue full"); ok {
			fmt.Println("queue full; others before:", suppressed)
		}
	}
	// Output: queue full; others before: 0
}
