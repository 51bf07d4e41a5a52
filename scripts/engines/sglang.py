"""What a release of SGLang takes and has, out of its source."""

import ast

import pyargs
from pyargs import ANY, JSON, LIST, SIMPLE, SWITCH, TEXT, option

PACKAGE = "sglang"
FILES = [
    "sglang/srt/server_args.py",
    "sglang/srt/arg_groups/*.py",
    "sglang/srt/function_call/function_call_parser.py",
    "sglang/srt/parser/reasoning_parser.py",
    "sglang/srt/reasoning_parser.py",
]
LAST = None

# A feature is there where one of these options is.
FEATURES = {
    "lora": ["enable-lora", "lora-paths"],
    "structured": ["grammar-backend"],
    "logprobs": ["tokenizer-path"],  # /generate has return_logprob in every release
    "images": ["enable-multimodal"],
    "audio": ["enable-multimodal"],
    "embeddings": ["is-embedding"],
    "tools": ["tool-call-parser"],
    "reasoning": ["reasoning-parser"],
    "kv-events": ["kv-events-config"],
    "kv-transfer": ["disaggregation-mode"],
}


def pick(releases, version):
    for f in releases:
        name = f["filename"]
        if name.startswith(f"sglang-{version}-") and name.endswith(".whl") and "aarch64" not in name:
            return f
    return None


def annotated(module, cls):
    """The options of a class whose fields are `name: A[type, "help" or Arg(…)]`."""
    out = {}
    for s in cls.body:
        if not isinstance(s, ast.AnnAssign) or not isinstance(s.target, ast.Name):
            continue
        a = s.annotation
        if not (isinstance(a, ast.Subscript) and getattr(a.value, "id", "") in ("A", "Annotated") and isinstance(a.slice, ast.Tuple)):
            continue
        arg = next((e for e in a.slice.elts[1:] if isinstance(e, ast.Call) and getattr(e.func, "id", "") == "Arg"), None)
        text = any(isinstance(e, (ast.Constant, ast.JoinedStr)) for e in a.slice.elts[1:])
        if arg is None and not text:
            continue
        kw = pyargs.keywords(arg)[0] if arg else {}
        if getattr(kw.get("no_cli"), "value", False):
            continue
        name = kw["cli_name"].value.lstrip("-") if "cli_name" in kw else s.target.id.replace("_", "-")
        aliases = [n.lstrip("-") for n in pyargs.constants(module, kw.get("aliases"))[0]]
        out[name] = classify(module, a.slice.elts[0], kw, aliases)
    return out


def classify(module, annotation, kw, aliases):
    if "action" in kw:
        boolean = getattr(kw["action"], "attr", "") == "BooleanOptionalAction"
        return option(SWITCH if boolean else ANY, aliases=aliases, negated=boolean)
    choices, whole = pyargs.constants(module, kw["choices"]) if "choices" in kw else ([], False)
    choices = [str(c) for c in choices] if whole else None
    if "type_parser" in kw:
        return option(JSON if ast.unparse(kw["type_parser"]) == "json.loads" else ANY, choices, aliases)
    kinds = [k for k in pyargs.atoms(module, annotation) if k != "none"]
    if len(kinds) != 1 or "nargs" in kw and kinds != ["list"]:
        return option(ANY, aliases=aliases)
    k = kinds[0]
    if isinstance(k, tuple):
        # Where the option says choices itself that cannot be read, the literal's do not hold.
        return option(TEXT, choices if "choices" in kw else [str(v) for v in k[1] if v is not None], aliases)
    if k == "list":
        return option(LIST, choices, aliases)
    if k == "bool":
        return option(SWITCH, aliases=aliases)
    return option(SIMPLE.get(k, ANY), choices, aliases)


def named(tree, variable):
    """The keys of a class's dict of that name, and None where no class has one."""
    for m in tree.modules.values():
        for cls in m.defs.values():
            for s in getattr(cls, "body", []):
                if isinstance(s, ast.AnnAssign) and getattr(s.target, "id", "") == variable and isinstance(s.value, ast.Dict):
                    keys, whole = pyargs.constants(m, s.value)
                    if not whole:
                        raise ValueError(f"{m.name}.{variable}: not all names can be read")
                    return keys
    raise ValueError(f"no {variable}")


def extract(files):
    tree = pyargs.Tree(files)
    flags, extra = {}, {"tool-call-parser": [], "reasoning-parser": []}
    for name in sorted(tree.modules):
        m = tree.modules[name]
        if "function_call" in name or "reasoning" in name:
            continue
        for d in m.defs.values():
            if isinstance(d, ast.ClassDef):
                flags |= annotated(m, d)
    server = tree.modules["sglang.srt.server_args"]
    for call in pyargs.calls(server.node, "add_argument"):
        name, _ = pyargs.names_of(call)
        if not name:
            continue
        o = pyargs.explicit(server, call)
        if name in extra:
            kw, _ = pyargs.keywords(call)
            extra[name] = [c for c in pyargs.constants(server, kw.get("choices"))[0] if c == "auto"]
            o.pop("choices", None)  # the parsers have a list of their own
        flags[name] = o
    for f in ("tool-call-parser", "reasoning-parser"):
        if f not in flags:
            raise ValueError(f"no --{f}")
        flags[f].pop("choices", None)
    connectors = flags.get("disaggregation-transfer-backend", {}).get("choices", [])
    return {
        "flags": flags,
        "tools": named(tree, "ToolCallParserEnum") + extra["tool-call-parser"],
        "reasoning": named(tree, "DetectorMap") + extra["reasoning-parser"],
        "connectors": connectors,
    }
