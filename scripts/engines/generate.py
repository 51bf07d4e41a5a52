#!/usr/bin/env python3
"""Makes the tables of nodes/engine/table: what the releases of the foreign engines take on their command lines and have.

    generate.py             read all releases from the package index and write the tables
    generate.py --check     read nothing from the network: the tables have the form and the digests that they should have

It needs Python 3.11 or newer and nothing else. What it reads are the packages' own sources, of which no code is run; what it writes are
facts about them: names of options, their types and values. Each release is named with its file and the SHA-256 that the index states.
"""

import concurrent.futures
import hashlib
import json
import pathlib
import sys

import fetch
import llamacpp
import pyargs
import sglang
import vllm

OUT = pathlib.Path(__file__).resolve().parents[2] / "nodes" / "engine" / "table"

# The releases that are read, oldest first. Add new ones at the end.
ENGINES = {
    "vllm": (vllm, [
        "0.10.0", "0.10.1", "0.10.1.1", "0.10.2", "0.11.0", "0.11.1", "0.11.2", "0.12.0", "0.13.0", "0.14.0", "0.14.1", "0.15.0", "0.15.1", "0.16.0",
        "0.17.0", "0.17.1", "0.18.0", "0.18.1", "0.19.0", "0.19.1", "0.20.0", "0.20.1", "0.20.2", "0.21.0", "0.22.0", "0.22.1", "0.23.0", "0.24.0", "0.25.0", "0.25.1", "0.26.0", "0.27.0", "0.27.1", "0.28.0", "0.29.0",
        "0.30.0", "0.31.0", "0.32.0", "0.33.0",
    ]),
    "sglang": (sglang, [
        "0.5.3.post3", "0.5.4.post3", "0.5.5.post3", "0.5.6.post2", "0.5.7", "0.5.8", "0.5.8.post1", "0.5.9", "0.5.10", "0.5.10.post1", "0.5.11", "0.5.12", "0.5.12.post1", "0.5.13", "0.5.13.post1", "0.5.14", "0.5.15",
        "0.5.15.post1", "0.5.16", "0.5.17", "0.5.18", "0.5.19", "0.5.20", "0.5.21", "0.5.22", "0.5.23",
    ]),
    "llamacpp": (llamacpp, ["b9993", "b10435", "b10867", "b10941", "b11003", "b11104", "b11200", "b11292", "b11349", "b11401", "b11434"]),
}


def read(engine, version):
    """What one release has, with where that was read."""
    module, _ = ENGINES[engine]
    release = module.pick(RELEASES[engine], version)
    if release is None:
        raise SystemExit(f"{engine} {version}: the index has no file of it that can be read")
    files = fetch.members(release, module.FILES, module.LAST)
    got = module.extract(files)
    for name, text in files.items():
        if lost := pyargs.missing(text, got["flags"]):
            raise SystemExit(f"{engine} {version}: {name}: options that were not read: {lost}")
    names = {n for f, o in got["flags"].items() for n in (f, *o.get("aliases", ()))}
    got["features"] = [f for f, any_of in module.FEATURES.items() if names & set(any_of)]
    got["release"] = {"version": version, "file": release["filename"], "sha256": release["hashes"]["sha256"]}
    print(f"{engine} {version}: {len(got['flags'])} flags, {len(got['tools'])} tool parsers, {len(got['reasoning'])} reasoning parsers, "
          f"{len(got['connectors'])} connectors, {' '.join(got['features'])}", file=sys.stderr)
    return got


RELEASES = {}


def merge(engine, releases):
    """All releases of an engine as one table: each fact once, with a bit for each release in which it holds; no bits: in all."""
    everywhere = (1 << len(releases)) - 1

    def bits(mask):
        return None if mask == everywhere else mask

    flags, lists = {}, {k: {} for k in ("tools", "reasoning", "connectors", "features")}
    for i, r in enumerate(releases):
        for name, o in r["flags"].items():
            key = json.dumps(o, sort_keys=True)
            variants = flags.setdefault(name, {})
            variants[key] = variants.get(key, 0) | 1 << i
        for k, seen in lists.items():
            for name in r[k]:
                seen[name] = seen.get(name, 0) | 1 << i
    out = {"package": ENGINES[engine][0].PACKAGE, "releases": [r["release"] for r in releases]}
    out["flags"] = {
        name: [json.loads(key) | ({"in": m} if bits(m) else {}) for key, m in sorted(flags[name].items(), key=lambda kv: -kv[1])]
        for name in sorted(flags)
    }
    for k, seen in lists.items():
        out[k] = {name: bits(seen[name]) or 0 for name in sorted(seen)}
    return out


def dump(t):
    """An engine's table as JSON with a line for each flag, so that a difference can be read."""
    def compact(v):
        return json.dumps(v, separators=(",", ":"))

    lines = ["{", f' "package": {compact(t["package"])},', ' "releases": [']
    lines += [f"  {compact(r)}," for r in t["releases"]]
    lines[-1] = lines[-1].rstrip(",")
    lines.append(" ],")
    for k in ("tools", "reasoning", "connectors", "features"):
        lines.append(f' "{k}": {compact(t[k])},')
    lines.append(' "flags": {')
    lines += [f"  {compact(n)}:{compact(v)}," for n, v in t["flags"].items()]
    lines[-1] = lines[-1].rstrip(",")
    return "\n".join([*lines, " }", "}"]) + "\n"


def sums(texts):
    """What sha256sum prints of the tables."""
    return "".join(f"{hashlib.sha256(texts[e].encode()).hexdigest()}  {e}.json\n" for e in sorted(texts))


def check():
    texts = {e: (OUT / f"{e}.json").read_text() for e in ENGINES}
    for engine, (_, versions) in ENGINES.items():
        table = json.loads(texts[engine])
        if dump(table) != texts[engine]:
            raise SystemExit(f"{engine}.json: not in the form that this script writes; it was changed by hand")
        have = [r["version"] for r in table["releases"]]
        if have != versions:
            raise SystemExit(f"{engine}.json: has {have}, this script names {versions}; run make engine-tables")
    if sums(texts) != (OUT / "SHA256SUMS").read_text():
        raise SystemExit("SHA256SUMS: not those of the tables")


def main():
    if sys.argv[1:] == ["--check"]:
        check()
        return
    for engine, (module, _) in ENGINES.items():
        RELEASES[engine] = fetch.releases(module.PACKAGE)
    jobs = [(e, v) for e, (_, versions) in ENGINES.items() for v in versions]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        got = dict(zip(jobs, pool.map(lambda j: read(*j), jobs), strict=True))
    texts = {e: dump(merge(e, [got[e, v] for v in versions])) for e, (_, versions) in ENGINES.items()}
    OUT.mkdir(parents=True, exist_ok=True)
    for engine, text in texts.items():
        (OUT / f"{engine}.json").write_text(text)
    (OUT / "SHA256SUMS").write_text(sums(texts))
    print(f"{OUT}: {sum(map(len, texts.values()))} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
