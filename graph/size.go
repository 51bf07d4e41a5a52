package graph

import (
	"fmt"
	"math"
	"strconv"
)

// ParseSize reads a whole number of bytes with a binary suffix: "512Mi", "256Gi", "4Ti".
func ParseSize(s string) (int64, error) {
	if len(s) > 2 {
		var shift int
		switch s[len(s)-2:] {
		case "Ki":
			shift = 10
		case "Mi":
			shift = 20
		case "Gi":
			shift = 30
		case "Ti":
			shift = 40
		}
		n, err := strconv.ParseUint(s[:len(s)-2], 10, 63)
		switch {
		case shift > 0 && err == nil && n > math.MaxInt64>>shift:
			return 0, fmt.Errorf("%q is too large", s)
		case shift > 0 && err == nil:
			return int64(n) << shift, nil
		}
	}
	return 0, fmt.Errorf("%q is not a size: want a number with Ki, Mi, Gi or Ti", s)
}

// FormatSize writes n bytes with the largest suffix that leaves a whole number, as ParseSize reads it. What is no whole number of KiB is
// rounded down.
func FormatSize(n int64) string {
	n >>= 10
	i := 0
	for ; i < 3 && n != 0 && n%1024 == 0; i++ {
		n >>= 10
	}
	return strconv.FormatInt(n, 10) + []string{"Ki", "Mi", "Gi", "Ti"}[i]
}
