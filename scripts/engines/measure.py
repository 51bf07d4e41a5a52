#!/usr/bin/env python3
"""Holds the table against the commands that the engines' own documentation shows: what it would call wrong there is a false alarm, or a
mistake of the documentation, so each is listed. Reads whole sdists: about 45 MB a release.

    measure.py vllm 0.32.0 [VERSION…]       all `vllm serve …` in the release's documentation, examples and scripts
    measure.py llamacpp b11434 [VERSION…]   the options that llama-server's own README lists, both ways
"""

import json
import re
import shlex
import sys
import tarfile

import fetch
import generate
import llamacpp

SUFFIXED = re.compile(r"\b\d+(\.\d+)?[kKmMgGtT]\b")


def flags_of(engine, version):
    """All names of a release's flags, with what they take."""
    table = json.loads((generate.OUT / f"{engine}.json").read_text())
    bit = 1 << [r["version"] for r in table["releases"]].index(version)
    return {n: v for f, variants in table["flags"].items() for v in variants if v.get("in", -1) & bit for n in (f, *v.get("aliases", ()))}


def find(flags, name):
    """A flag as the check finds it: also negated, shortened, with underscores and as a part of a JSON value."""
    name = name.lstrip("-").replace("_", "-").partition(".")[0]
    if name in flags:
        return flags[name]
    if name.startswith("no-") and flags.get(name[3:], {}).get("negated"):
        return {"type": "switch"}
    begin = {id(v): v for n, v in flags.items() if n.startswith(name)}
    return next(iter(begin.values())) if len(begin) == 1 else None


def wrong(flag, value):
    """Whether the check would refuse a value that the command gives; a value with a shell variable or a placeholder is not judged."""
    if not value or re.search(r"[$<…]", value):
        return False
    if flag["type"] == "json":
        try:
            json.loads(SUFFIXED.sub("0", value))
        except ValueError:
            return True
    if flag["type"] in ("int", "float"):
        return not re.fullmatch(r"-?\d+(\.\d+)?([eE]-?\d+)?[kKmMgGtT]?|auto|None", value)
    return bool(flag.get("choices")) and flag["type"] != "list" and value not in flag["choices"]


def texts(release, suffixes):
    with fetch._open(release["url"]) as r, tarfile.open(fileobj=r, mode="r|gz") as t:
        for m in t:
            name = m.name.partition("/")[2]
            if m.isfile() and name.endswith(suffixes) and not name.startswith("vllm/"):
                yield name, t.extractfile(m).read().decode(errors="replace")


def vllm(version):
    flags = flags_of("vllm", version)
    release = next(f for f in fetch.releases("vllm") if f["filename"] == f"vllm-{version}.tar.gz")
    commands = given = 0
    for name, text in texts(release, (".md", ".sh", ".yaml", ".yml", ".py")):
        for m in re.finditer(r"^[^\n#]*\bvllm serve\b([^\n|>&;`]*)", re.sub(r"\\\n\s*", " ", text), re.M):
            try:
                words = shlex.split(m.group(1))
            except ValueError:
                continue
            commands += 1
            for word, after in zip(words, [*words[1:], "--"], strict=False):
                if not re.match(r"--[a-z]", word):
                    continue
                given += 1
                flag, _, value = word.partition("=")
                value = value or ("" if after.startswith("--") else after)
                known = find(flags, flag)
                if known is None:
                    print(f"  {name}: {flag}: no such flag")
                elif known["type"] != "switch" and "." not in flag and wrong(known, value):
                    print(f"  {name}: {flag} {value}")
    print(f"vllm {version}: {given} flags in {commands} commands")


def llama(version):
    flags = set(flags_of("llamacpp", version))
    release = llamacpp.pick(fetch.releases(llamacpp.PACKAGE), version)
    _, text = next((n, t) for n, t in texts(release, ("tools/server/README.md",)))
    rows = re.findall(r"^\| `(-[^`]+)`", text, re.M)
    listed = {n.lstrip("-") for r in rows for n in re.findall(r"(?:^|, )(-{1,2}[\w.-]+)", r)}
    print(f"llamacpp {version}: the README lists {len(listed)} names; the table lacks {sorted(listed - flags)}, and has beside {sorted(flags - listed)}")


if __name__ == "__main__":
    for v in sys.argv[2:]:
        {"vllm": vllm, "llamacpp": llama}[sys.argv[1]](v)
