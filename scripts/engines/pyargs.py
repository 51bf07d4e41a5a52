"""Reads what command-line options a Python program takes out of its source, by its syntax tree: argparse calls, and the dataclasses from
which some programs derive them. Nothing is imported or run. What cannot be read for certain has the type "any" and no choices."""

import ast
import re

# The types of options: a switch, a whole number, a number, text, JSON, a list, and "any" for what is not known.
SWITCH, INT, FLOAT, TEXT, JSON, LIST, ANY = "switch", "int", "float", "text", "json", "list", "any"


def option(type_, choices=None, aliases=(), negated=False):
    """One option, without what is empty."""
    o = {"type": type_}
    if choices:
        o["choices"] = sorted({str(c) for c in choices})
    if aliases:
        o["aliases"] = sorted(aliases)
    if negated:
        o["negated"] = True
    return o


class Tree:
    """All modules of a package that were read, by dotted name."""

    def __init__(self, files):
        self.modules = {}
        for path, text in files.items():
            if path.endswith(".py"):
                name = path[:-3].removesuffix("/__init__").replace("/", ".")
                self.modules[name] = Module(self, name, ast.parse(text))

    def find(self, what):
        """The module and node of a class or function, by name; the first module in order of names that has it."""
        for name in sorted(self.modules):
            if what in self.modules[name].defs:
                return self.modules[name], self.modules[name].defs[what]
        return None, None


class Module:
    def __init__(self, tree, name, node):
        self.tree, self.name, self.node = tree, name, node
        self.defs, self.values, self.imports = {}, {}, {}
        for s in node.body:
            self._note(s)

    def _note(self, s):
        if isinstance(s, (ast.ClassDef, ast.FunctionDef)):
            self.defs[s.name] = s
        elif isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name):
            self.values[s.targets[0].id] = s.value
        elif isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name) and s.value is not None:
            self.values[s.target.id] = s.value
        elif isinstance(s, ast.ImportFrom) and s.module:
            for a in s.names:
                self.imports[a.asname or a.name] = (self._absolute(s), a.name)
        elif isinstance(s, ast.If):  # `if TYPE_CHECKING:` holds the imports that say what the names mean
            for b in s.body:
                self._note(b)

    def _absolute(self, s):
        if not s.level:
            return s.module
        parent = self.name.split(".")[: -s.level]
        return ".".join([*parent, s.module])

    def lookup(self, name, seen=()):
        """The module and the node that define a name: a class, a function or a value; (None, None) where it is not known."""
        if (self.name, name) in seen:
            return None, None
        if name in self.defs:
            return self, self.defs[name]
        if name in self.values and name not in self.imports:
            return self, self.values[name]
        if name in self.imports:
            module, original = self.imports[name]
            m = self.tree.modules.get(module)
            if m is not None:
                return m.lookup(original, (*seen, (self.name, name)))
        return None, None


def constants(module, node, depth=0):
    """The constants of a list, tuple, set, dict (its keys) or a sum of such, and whether these are all."""
    if depth > 8 or node is None:
        return [], False
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        out, whole = [], True
        for e in node.elts:
            if isinstance(e, ast.Constant):
                out.append(e.value)
            elif isinstance(e, ast.Starred):
                more, all_ = constants(module, e.value, depth + 1)
                out += more
                whole = whole and all_
            else:
                whole = False
        return out, whole
    if isinstance(node, ast.Dict):
        keys = [k.value for k in node.keys if isinstance(k, ast.Constant)]
        return keys, len(keys) == len(node.keys)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.BitOr)):
        a, all_a = constants(module, node.left, depth + 1)
        b, all_b = constants(module, node.right, depth + 1)
        return a + b, all_a and all_b
    if isinstance(node, ast.Name):
        m, v = module.lookup(node.id)
        return constants(m, v, depth + 1) if m and not isinstance(v, (ast.ClassDef, ast.FunctionDef)) else ([], False)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("list", "set", "frozenset", "sorted", "tuple") and len(node.args) == 1:
        return constants(module, node.args[0], depth + 1)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "keys" and not node.args:
        return constants(module, node.func.value, depth + 1)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "get_args" and len(node.args) == 1:
        lits = [a for a in atoms(module, node.args[0]) if isinstance(a, tuple)]
        return ([v for a in lits for v in a[1]], True) if lits else ([], False)
    return [], False


BUILTINS = {"bool", "int", "float", "str", "dict", "list", "tuple", "set"}
ALIASES = {"Dict": "dict", "List": "list", "Tuple": "tuple", "Set": "set", "Sequence": "list"}


def atoms(module, node, depth=0):
    """What an annotation may be, as a list of "int", "str", "none", "record" (a class with fields), "class", ("literal", values) and "?".
    """
    if depth > 10 or module is None:
        return ["?"]
    if isinstance(node, ast.Constant):
        if node.value is None:
            return ["none"]
        if isinstance(node.value, str):
            return atoms(module, ast.parse(node.value, mode="eval").body, depth + 1)
        return ["?"]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return atoms(module, node.left, depth + 1) + atoms(module, node.right, depth + 1)
    if isinstance(node, ast.Name):
        if node.id in BUILTINS:
            return [node.id]
        if node.id in ALIASES:
            return [ALIASES[node.id]]
        m, v = module.lookup(node.id)
        if isinstance(v, ast.ClassDef):
            return ["record"] if _is_record(v) else ["?"]
        return atoms(m, v, depth + 1) if m and not isinstance(v, ast.FunctionDef) else ["?"]
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        head = ALIASES.get(node.value.id, node.value.id)
        if head == "Optional":
            return [*atoms(module, inner[0], depth + 1), "none"]
        if head == "Union":
            return [a for i in inner for a in atoms(module, i, depth + 1)]
        if head in ("Annotated", "SkipValidation", "ClassVar"):
            return atoms(module, inner[0], depth + 1)
        if head == "Literal":
            values, whole = [], True
            for i in inner:
                if isinstance(i, ast.Constant):
                    values.append(i.value)
                    continue
                lits = [a for a in atoms(module, i, depth + 1) if isinstance(a, tuple)]
                whole = whole and bool(lits)
                values += [v for a in lits for v in a[1]]
            return [("literal", values)] if whole else ["?"]
        if head in BUILTINS:
            return [head]
    if isinstance(node, ast.Attribute):
        return ["class"]  # torch.dtype: a class, so no literal and no text
    return ["?"]


def _is_record(c):
    """Whether a class is a dataclass: a decorator that is one, or is called config."""
    for d in c.decorator_list:
        d = d.func if isinstance(d, ast.Call) else d
        name = d.id if isinstance(d, ast.Name) else getattr(d, "attr", "")
        if name in ("dataclass", "config"):
            return True
    return False


def keywords(call):
    """A call's keyword arguments, and the expressions that it unpacks."""
    return {k.arg: k.value for k in call.keywords if k.arg}, [k.value for k in call.keywords if not k.arg]


def calls(node, name):
    """All calls of a method of that name below a node, in the order of the source."""
    found = [c for c in ast.walk(node) if isinstance(c, ast.Call) and isinstance(c.func, ast.Attribute) and c.func.attr == name]
    return sorted(found, key=lambda c: (c.lineno, c.col_offset))


def names_of(call):
    """The option names of an add_argument call, without hyphens: the first long one, then the others; None for a positional."""
    given = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    if not given or not all(n.startswith("-") for n in given):
        return None, []
    long = [n for n in given if n.startswith("--")]
    first = (long or given)[0]
    name = first.lstrip("-")
    return name, sorted({n.lstrip("-") for n in given} - {name})


SIMPLE = {"int": INT, "float": FLOAT, "str": TEXT}


def explicit(module, call):
    """The option of an add_argument call that says everything itself; "any" where it unpacks something."""
    kw, unpacked = keywords(call)
    _, aliases = names_of(call)
    if unpacked:
        return option(ANY, aliases=aliases)
    action = kw.get("action")
    word = action.value if isinstance(action, ast.Constant) else getattr(action, "attr", getattr(action, "id", None))
    if word in ("store_true", "store_false", "store_const"):
        return option(SWITCH, aliases=aliases)
    if word == "BooleanOptionalAction":
        return option(SWITCH, aliases=aliases, negated=True)
    if word not in (None, "store", "append", "extend"):
        return option(ANY, aliases=aliases)
    choices, whole = constants(module, kw["choices"]) if "choices" in kw else ([], False)
    if "nargs" in kw and not (isinstance(kw["nargs"], ast.Constant) and kw["nargs"].value is None):
        optional = isinstance(kw["nargs"], ast.Constant) and kw["nargs"].value == "?"
        return option(ANY if optional else LIST, aliases=aliases)
    type_ = kw.get("type")
    if type_ is None or isinstance(type_, ast.Name):
        return option(SIMPLE.get(getattr(type_, "id", "str"), ANY), choices if whole else None, aliases)
    return option(ANY, aliases=aliases)


def missing(text, flags):
    """The long options that a source's add_argument calls name, by a search that knows no syntax, and that flags lacks."""
    named = {n.lstrip("-") for call in re.findall(r"add_argument\(\s*((?:[\"']-[\w-]+[\"'],?\s*)+)", text) for n in re.findall(r"--[\w-]+", call)}
    return sorted(named - {n for f, o in flags.items() for n in (f, *o.get("aliases", ()))})
