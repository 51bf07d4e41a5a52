package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/specs/load"
)

// completeTime is how long the shell waits for what depends on a spec.
const completeTime = 2 * time.Second

func (p *program) completion() *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print what completes this command in a shell: bash, zsh or fish", ArgsUsage: "SHELL",
		Description: "bash: source <(dynamo completion bash)\nzsh:  source <(dynamo completion zsh)\nfish: dynamo completion fish | source",
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 || shells[c.Args().First()] == "" {
				return cli.Fail(cli.Usage, "want one SHELL: bash, fish or zsh; try: source <(dynamo completion bash)")
			}
			_, err := fmt.Fprint(p.Stdout, shells[c.Args().First()])
			return err
		},
	}
}

// shells are the functions that ask "dynamo __complete": its words are those of the line without the first, the last is the one at the cursor.
// A line of its answer is a word and, behind a tab, what it means. Words that end in = or . go on.
var shells = map[string]string{
	"bash": `_dynamo() {
	local IFS=$'\n' word=${COMP_WORDS[COMP_CWORD]} prefix= i
	local -a words
	# bash cuts words at = and :, which the program wants whole
	local line=${COMP_LINE:0:COMP_POINT}
	IFS=$' \t' read -r -a words <<< "$line"
	[[ $line == *[[:space:]] ]] && words+=("")
	local cur=${words[${#words[@]}-1]}
	prefix=${cur%"$word"}
	[[ $word == "=" || $word == ":" ]] && prefix=$cur
	COMPREPLY=($(dynamo __complete -- "${words[@]:1}" 2>/dev/null | cut -f1))
	for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${COMPREPLY[i]#"$prefix"}; done
	[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=.] ]] && compopt -o nospace 2>/dev/null
	return 0
}
complete -o default -o bashdefault -F _dynamo dynamo
`,
	"zsh": `#compdef dynamo
_dynamo() {
	local -a open done
	local line word
	for line in "${(@f)$(dynamo __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
		[[ -z $line ]] && continue
		word=${${line%%$'\t'*}//:/\\:}
		if [[ $line == *$'\t'* ]]; then word+=":${line#*$'\t'}"; fi
		if [[ ${line%%$'\t'*} == *[=.] ]]; then open+=("$word"); else done+=("$word"); fi
	done
	(( ${#open} + ${#done} )) || { _files; return }
	(( ${#open} )) && _describe -t values 'dynamo' open -S ''
	(( ${#done} )) && _describe -t values 'dynamo' done
}
compdef _dynamo dynamo
`,
	"fish": `function __dynamo_complete
	set -l words (commandline -opc)
	dynamo __complete -- $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c dynamo -a '(__dynamo_complete)'
`,
}

// complete answers the shells.
func (p *program) complete() *cli.Command {
	return &cli.Command{
		Name: "__complete", Hidden: true, SkipFlagParsing: true,
		Action: func(c *cli.Context) error {
			words := c.Args().Slice()
			if len(words) > 0 && words[0] == "--" {
				words = words[1:]
			}
			if len(words) == 0 {
				words = []string{""}
			}
			ctx, cancel := context.WithTimeout(c.Context, completeTime)
			defer cancel()
			cur := words[len(words)-1]
			seen := map[string]bool{}
			for _, w := range p.candidates(ctx, c.App.Commands, words[:len(words)-1], cur) {
				if strings.HasPrefix(w.word, cur) && !seen[w.word] {
					seen[w.word] = true
					fmt.Fprintln(p.Stdout, strings.TrimSuffix(w.word+"\t"+w.doc, "\t"))
				}
			}
			return nil
		},
	}
}

// candidate is a word that may stand at the cursor.
type candidate struct{ word, doc string }

// line is what stands before the cursor.
type line struct {
	command *cli.Command
	path    string // names of the commands: "graph vet"
	args    []string
	flag    cli.Flag // whose value is wanted; nil for none
	values  map[string][]string
}

// candidates lists what may come next; those that do not fit the word at the cursor are left to the caller.
func (p *program) candidates(ctx context.Context, commands []*cli.Command, before []string, cur string) []candidate {
	l := line{values: map[string][]string{}}
	for i, w := range before {
		found := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(w) })
		if found < 0 {
			l.rest(before[i:])
			break
		}
		l.command = commands[found]
		commands = l.command.Subcommands
		l.path = strings.TrimSpace(l.path + " " + l.command.Name)
	}
	switch {
	case l.flag != nil:
		return p.valueWords(ctx, l, l.flag.Names()[0], usageOf(l.flag), "", cur)
	case strings.HasPrefix(cur, "--") && strings.Contains(cur, "=") && l.command != nil:
		name, value, _ := strings.Cut(cur, "=")
		for _, f := range l.command.Flags {
			if slices.Contains(f.Names(), strings.TrimPrefix(name, "--")) {
				return p.valueWords(ctx, l, f.Names()[0], usageOf(f), name+"=", value)
			}
		}
		return nil
	case strings.HasPrefix(cur, "-"):
		return flagWords(l.command)
	case len(commands) > 0 && len(l.args) == 0:
		var out []candidate
		for _, c := range commands {
			if !c.Hidden {
				out = append(out, candidate{c.Name, c.Usage})
			}
		}
		return out
	case l.path == "explain" && len(l.args) == 0:
		var out []candidate
		for _, k := range kind.Default.All() {
			out = append(out, candidate{k.Name, k.Summary})
		}
		for _, code := range sortedKeys(diag.Codes) {
			out = append(out, candidate{code, diag.Codes[code].Meaning})
		}
		return out
	case l.path == "completion" && len(l.args) == 0:
		return wordsOf(sortedKeys(shells), "")
	case l.path == "graph explain" && len(l.args) == 1:
		return p.pathWords(ctx, l, cur, "")
	}
	return nil // files, which shells know
}

// rest reads what follows the command: arguments, and flags with their values.
func (l *line) rest(words []string) {
	for i := 0; i < len(words); i++ {
		w := words[i]
		if len(w) < 2 || w[0] != '-' || l.command == nil {
			l.args = append(l.args, w)
			continue
		}
		name, value, set := strings.Cut(strings.TrimLeft(w, "-"), "=")
		at := slices.IndexFunc(l.command.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
		if at < 0 {
			continue
		}
		f := l.command.Flags[at]
		if _, isBool := f.(*cli.BoolFlag); isBool {
			continue
		}
		if !set {
			if i+1 == len(words) {
				l.flag = f
				return
			}
			i++
			value = words[i]
		}
		l.values[f.Names()[0]] = append(l.values[f.Names()[0]], value)
	}
}

// options say how the spec on the line is read.
func (l *line) options() load.Options {
	return load.Options{Registry: kind.Default, Tags: l.values["tag"], Overlays: l.values["overlay"], Set: l.values["set"], Limits: load.Limits{Time: completeTime}}
}

func flagWords(c *cli.Command) []candidate {
	out := []candidate{{"--help", "show help"}}
	if c == nil {
		return out
	}
	for _, f := range c.Flags {
		for _, n := range f.Names() {
			if len(n) == 1 {
				n = "-" + n
			} else {
				n = "--" + n
			}
			out = append(out, candidate{n, strings.ReplaceAll(usageOf(f), "`", "")})
		}
	}
	return out
}

// usageOf is the text of a flag.
func usageOf(f cli.Flag) string {
	if d, ok := f.(interface{ GetUsage() string }); ok {
		return d.GetUsage()
	}
	return ""
}

// listed finds the values in a flag's text: "`FORMAT`: text, json or github".
var listed = regexp.MustCompile(`: ([a-z0-9]+(?:, [a-z0-9]+)*(?: or [a-z0-9]+|, [a-z0-9]+))(?::|$)`)

// valueWords lists the values of a flag. What stands before the value in the same word comes in front of each.
func (p *program) valueWords(ctx context.Context, l line, name, usage, before, cur string) []candidate {
	switch name {
	case "tag":
		if len(l.args) == 0 {
			return nil
		}
		var tags []string
		for _, t := range load.Tags(ctx, l.args[0], l.options()) {
			tags = append(tags, t+"=")
		}
		return wordsOf(tags, before)
	case "set":
		return p.pathWords(ctx, l, cur, before)
	}
	if m := listed.FindStringSubmatch(usage); m != nil {
		return wordsOf(strings.Fields(strings.NewReplacer(",", " ", " or ", " ").Replace(m[1])), before)
	}
	return nil
}

func wordsOf(words []string, before string) (out []candidate) {
	for _, w := range words {
		out = append(out, candidate{before + w, ""})
	}
	return out
}

// pathWords lists paths of the spec on the line: nodes by their names, then fields. For --set, which stands before, paths end in =.
func (p *program) pathWords(ctx context.Context, l line, cur, before string) []candidate {
	if len(l.args) == 0 {
		return nil
	}
	end := ""
	if before != "" || l.flag != nil {
		end = "="
	}
	i := strings.LastIndexByte(cur, '.')
	if i < 0 {
		return wordsOf([]string{"nodes.", "edges.", "models.", "model.", "slo.", "timeouts.", "machine."}, before)
	}
	above := cur[:i]
	e, _, err := load.Explain(ctx, l.args[0], l.options(), above)
	if err != nil {
		return nil
	}
	var out []candidate
	if above == "nodes" || e == nil {
		g, _, err := load.File(ctx, l.args[0], l.options())
		if err != nil || g == nil || above != "nodes" {
			return nil
		}
		for _, n := range sortedKeys(g.Nodes) {
			out = append(out, candidate{before + "nodes." + n, g.Nodes[n].Kind}, candidate{before + "nodes." + n + ".", g.Nodes[n].Kind})
		}
		if end != "" {
			out = slices.DeleteFunc(out, func(c candidate) bool { return !strings.HasSuffix(c.word, ".") })
		}
		return out
	}
	for _, f := range e.Fields {
		out = append(out, candidate{before + above + "." + f + end, ""})
	}
	return out
}
