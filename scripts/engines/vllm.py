"""What a release of vLLM takes and has, out of its source."""

import ast

import pyargs
from pyargs import ANY, FLOAT, INT, JSON, LIST, SWITCH, TEXT, option

PACKAGE = "vllm"
FILES = [
    "vllm/engine/arg_utils.py",
    "vllm/config.py",
    "vllm/config/*.py",
    "vllm/utils/argparse_utils.py",
    "vllm/entrypoints/*/cli_args.py",
    "vllm/entrypoints/openai/tool_parsers/*.py",
    "vllm/tool_parsers/*.py",
    "vllm/reasoning/*.py",
    "vllm/distributed/kv_transfer/kv_connector/factory.py",
    "vllm/model_executor/layers/quantization/__init__.py",
]

# A feature is there where one of these options is.
FEATURES = {
    "lora": ["enable-lora"],
    "structured": ["structured-outputs-config", "guided-decoding-backend"],
    "logprobs": ["max-logprobs"],
    "images": ["limit-mm-per-prompt"],
    "audio": ["limit-mm-per-prompt"],
    "embeddings": ["convert", "task"],
    "tools": ["tool-call-parser"],
    "reasoning": ["reasoning-parser"],
    "kv-events": ["kv-events-config"],
    "kv-transfer": ["kv-transfer-config"],
}


def pick(releases, version):
    """The release file to read: any wheel will do, the Python files are the same."""
    for f in releases:
        if f["filename"].startswith(f"vllm-{version}-") and f["filename"].endswith("x86_64.whl"):
            return f
    return None


LAST = None


def classify(module, node, aliases=()):
    """An option as vLLM derives it from the type of a field. The order is that of its own derivation."""
    kinds = pyargs.atoms(module, node)
    literals = [v for a in kinds if isinstance(a, tuple) for v in a[1]]
    plain = {a for a in kinds if isinstance(a, str)}
    if "?" in plain:
        return option(ANY, aliases=aliases)
    if "record" in plain:
        return option(JSON, aliases=aliases)
    if {"bool", "str"} <= plain:
        return option(ANY, aliases=aliases)
    if "bool" in plain:
        return option(SWITCH, aliases=aliases, negated=True)
    if literals:
        return option(TEXT, None if "str" in plain else [str(v) for v in literals if v is not None], aliases)
    for word, type_ in (("tuple", LIST), ("list", LIST), ("set", LIST), ("int", INT), ("float", FLOAT)):
        if word in plain:
            return option(type_, aliases=aliases)
    if "dict" in plain:
        return option(ANY if "str" in plain else JSON, aliases=aliases)
    return option(TEXT if "str" in plain else ANY, aliases=aliases)


def fields(module, cls):
    """The annotated fields of a class and its bases: {name: (module, annotation)}."""
    out = {}
    for b in cls.bases:
        if isinstance(b, ast.Name):
            m, c = module.lookup(b.id)
            if isinstance(c, ast.ClassDef):
                out |= fields(m, c)
    for s in cls.body:
        if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name):
            out[s.target.id] = (module, s.annotation)
    return out


def from_config(function, module):
    """The options of a function that registers them with `**X["field"]`, X = get_kwargs(Class)."""
    sources, changed, shorthand = {}, set(), {}
    for s in ast.walk(function):
        if isinstance(s, ast.Assign) and len(s.targets) == 1:
            t, v = s.targets[0], s.value
            if isinstance(t, ast.Name) and isinstance(v, ast.Call) and getattr(v.func, "id", "") == "get_kwargs" and v.args:
                sources[t.id] = v.args[0].id
            elif isinstance(t, ast.Name) and isinstance(v, ast.Subscript):  # x = X["field"], then x is changed or unpacked
                shorthand[t.id] = v
            elif isinstance(t, ast.Subscript):  # X["field"]["choices"] = …: what the class says no longer holds
                base = t.value
                changed.add(base.id if isinstance(base, ast.Name) else ast.unparse(base))
    out = {}
    for call in pyargs.calls(function, "add_argument"):
        name, aliases = pyargs.names_of(call)
        if name is None:
            continue
        kw, unpacked = pyargs.keywords(call)
        out[name] = pyargs.explicit(module, call)
        if len(unpacked) != 1 or set(kw) - {"help", "default", "dest", "deprecated"}:
            continue
        ref = unpacked[0]
        if isinstance(ref, ast.Dict) and ref.keys and ref.keys[0] is None:  # {**X["field"], "default": …}
            if any(getattr(k, "value", "") not in ("default", "help") for k in ref.keys[1:]):
                continue
            ref = ref.values[0]
        if isinstance(ref, ast.Name):
            if ref.id in changed:
                continue
            ref = shorthand.get(ref.id)
        if not isinstance(ref, ast.Subscript) or not isinstance(ref.value, ast.Name) or not isinstance(ref.slice, ast.Constant):
            continue
        if ast.unparse(ref) in changed or ref.value.id not in sources:
            continue
        m, cls = module.lookup(sources[ref.value.id])
        if isinstance(cls, ast.ClassDef):
            at, annotation = fields(m, cls).get(ref.slice.value, (None, None))
            if annotation is not None:
                out[name] = classify(at, annotation, aliases)
    return out


def frontend(tree):
    """The options of the HTTP server: all fields of its class, and those that are added one by one."""
    module, cls = tree.find("FrontendArgs")
    if cls is None:
        raise ValueError("no FrontendArgs")
    out = {}
    custom = {n.value for c in [cls, *_bases(module, cls)] for f in c.body if isinstance(f, ast.FunctionDef)
              for n in ast.walk(f) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    for name, (m, annotation) in fields(module, cls).items():
        o = classify(m, annotation)
        # A field that a method names is changed by it.
        out[name.replace("_", "-")] = option(ANY) if name in custom else o
    for call in pyargs.calls(module.defs["make_arg_parser"], "add_argument"):
        name, _ = pyargs.names_of(call)
        if name:
            out[name] = pyargs.explicit(module, call)
    return out


def _bases(module, cls):
    for b in cls.bases:
        m, c = module.lookup(b.id) if isinstance(b, ast.Name) else (None, None)
        if isinstance(c, ast.ClassDef):
            yield c
            yield from _bases(m, c)


def registry(tree, variable, manager):
    """The names of a registry: a dict, or, before there was one, what decorators register."""
    for name in sorted(tree.modules):
        if variable in tree.modules[name].values:
            keys, whole = pyargs.constants(tree.modules[name], tree.modules[name].values[variable])
            if not whole:
                raise ValueError(f"{name}.{variable}: not all names can be read")
            return keys
    found = []
    for name in sorted(tree.modules):
        for d in tree.modules[name].defs.values():
            for c in getattr(d, "decorator_list", []):
                if isinstance(c, ast.Call) and ast.unparse(c.func) == manager + ".register_module":
                    named = pyargs.constants(tree.modules[name], c.args[0])[0] if c.args and not isinstance(c.args[0], ast.Constant) else [a.value for a in c.args]
                    if not named:
                        raise ValueError(f"{name}: {d.name}: no name in its decorator")
                    found += named
    if not found:
        raise ValueError(f"no {variable}")
    return found


def extract(files):
    tree = pyargs.Tree(files)
    flags = frontend(tree)
    module, engine = tree.find("EngineArgs")
    _, server = tree.find("AsyncEngineArgs")
    for cls in (engine, server):
        for f in cls.body:
            if isinstance(f, ast.FunctionDef) and f.name == "add_cli_args":
                flags |= from_config(f, module)
    if tree.find("EnableDisableAction")[1]:  # a switch --enable-x is turned off by --disable-x, too, and the other way round
        for name, o in flags.items():
            for one, other in (("enable-", "disable-"), ("disable-", "enable-")):
                inverse = other + name.removeprefix(one)
                if o.get("negated") and name.startswith(one) and inverse not in flags:
                    o["aliases"] = sorted({*o.get("aliases", ()), inverse})
    factory = tree.modules["vllm.distributed.kv_transfer.kv_connector.factory"]
    connectors = [c.args[0].value for c in pyargs.calls(factory.node, "register_connector") if c.args and isinstance(c.args[0], ast.Constant)]
    return {
        "flags": flags,
        "tools": registry(tree, "_TOOL_PARSERS_TO_REGISTER", "ToolParserManager"),
        "reasoning": registry(tree, "_REASONING_PARSERS_TO_REGISTER", "ReasoningParserManager"),
        "connectors": connectors,
    }
