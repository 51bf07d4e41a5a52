package jinja

import (
	"fmt"
	"strings"
	"time"
)

// Strftime formats t as C's strftime does in the C locale with GNU's flags (- _ 0 ^ #) and widths; what it does not know stays as it is.
func Strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		from := i
		flag := byte(0)
		for i++; i < len(format)-1 && strings.IndexByte("-_0^#", format[i]) >= 0; i++ {
			flag = format[i]
		}
		width := 0
		for ; i < len(format)-1 && format[i] >= '0' && format[i] <= '9' && width < 100; i++ {
			width = width*10 + int(format[i]-'0')
		}
		s, ok := directive(t, format[i])
		if !ok {
			b.WriteString(format[from : i+1])
			continue
		}
		b.WriteString(flagged(s, flag, width))
	}
	return b.String()
}

func flagged(s string, flag byte, width int) string {
	number := s != "" && strings.Trim(s, " 0123456789") == ""
	if n := width - len(s); n > 0 && flag != '-' {
		fill := " "
		if number && flag != '_' {
			fill = "0"
		}
		s = strings.Repeat(fill, n) + s
	}
	switch {
	case flag == '^' || flag == '#':
		return strings.ToUpper(s)
	case !number || flag == 0:
		return s
	}
	bare := strings.TrimLeft(s, " 0")
	if bare == "" {
		bare = "0"
	}
	switch flag {
	case '_':
		return strings.Repeat(" ", len(s)-len(bare)) + bare
	case '0':
		return strings.Repeat("0", len(s)-len(bare)) + bare
	}
	return bare
}

var layouts = map[byte]string{
	'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'e': "_2", 'B': "January", 'b': "Jan", 'h': "Jan", 'A': "Monday", 'a': "Mon",
	'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'P': "pm", 'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06",
	'R': "15:04", 'r': "03:04:05 PM", 'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05",
}

// directive is one directive; Z and z are empty, as they are for a time of Python without a zone.
func directive(t time.Time, c byte) (string, bool) {
	if l, ok := layouts[c]; ok {
		return t.Format(l), true
	}
	year, week := t.ISOWeek()
	day := int(t.Weekday())
	switch c {
	case '%':
		return "%", true
	case 'n':
		return "\n", true
	case 't':
		return "\t", true
	case 'Z', 'z':
		return "", true
	case 'j':
		return fmt.Sprintf("%03d", t.YearDay()), true
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000), true
	case 'k':
		return fmt.Sprintf("%2d", t.Hour()), true
	case 'l':
		return fmt.Sprintf("%2d", (t.Hour()+11)%12+1), true
	case 's':
		return fmt.Sprint(t.Unix()), true
	case 'C':
		return fmt.Sprintf("%02d", t.Year()/100), true
	case 'G':
		return fmt.Sprint(year), true
	case 'g':
		return fmt.Sprintf("%02d", year%100), true
	case 'V':
		return fmt.Sprintf("%02d", week), true
	case 'u':
		return fmt.Sprint((day+6)%7 + 1), true
	case 'w':
		return fmt.Sprint(day), true
	case 'U':
		return fmt.Sprintf("%02d", (t.YearDay()+6-day)/7), true
	case 'W':
		return fmt.Sprintf("%02d", (t.YearDay()+6-(day+6)%7)/7), true
	}
	return "", false
}
