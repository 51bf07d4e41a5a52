package template

import (
	"fmt"
	"strings"
	"time"
)

// strftime formats t as C's strftime does in the C locale, for the directives that chat templates use; others stay as they are. A dash
// behind the percent sign drops leading zeros.
func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		bare := format[i] == '-' && i+1 < len(format)
		if bare {
			i++
		}
		s := directive(t, format[i])
		switch {
		case s == "":
			s = "%" + string(format[i])
		case bare && len(s) > 1:
			if s = strings.TrimLeft(s, "0"); s == "" {
				s = "0"
			}
		}
		b.WriteString(s)
	}
	return b.String()
}

func directive(t time.Time, c byte) string {
	layouts := map[byte]string{
		'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'e': "_2", 'B': "January", 'b': "Jan", 'h': "Jan", 'A': "Monday", 'a': "Mon",
		'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'Z': "MST", 'z': "-0700", 'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06",
		'R': "15:04", 'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05",
	}
	switch c {
	case '%':
		return "%"
	case 'j':
		return fmt.Sprintf("%03d", t.YearDay())
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000)
	}
	if l, ok := layouts[c]; ok {
		return t.Format(l)
	}
	return ""
}
