#!/usr/bin/env python3
"""Runs the extraction on small sources that were written for it, in the forms in which the engines' own are."""

import unittest

import fetch
import generate
import llamacpp
import sglang
import vllm

VLLM = {
    "vllm/config/cache.py": """
from dataclasses import field
from typing import Literal
from pydantic import Field
from vllm.config.utils import config
KVType = Literal["auto", "small"]

@config
class CacheConfig:
    block: int = Field(default=None, gt=0)
    kv_type: KVType = "auto"
    reuse: bool = True
    extra: dict[str, str] | None = None
    backend: "str | Literal['a', 'b']" = "a"
    open_type: Unknown = None
""",
    "vllm/config/__init__.py": "from vllm.config.cache import CacheConfig\n",
    "vllm/engine/arg_utils.py": """
import argparse, json
from vllm.config import CacheConfig

class EngineArgs:
    @staticmethod
    def add_cli_args(parser):
        cache_kwargs = get_kwargs(CacheConfig)
        g = parser.add_argument_group("cache")
        g.add_argument("--block", "-b", **cache_kwargs["block"])
        g.add_argument("--kv-type", **{**cache_kwargs["kv_type"], "default": None})
        g.add_argument("--reuse", **cache_kwargs["reuse"])
        g.add_argument("--extra", **cache_kwargs["extra"])
        backend_kwargs = cache_kwargs["backend"]
        backend_kwargs["type"] = lambda s: s.lower()
        g.add_argument("--backend", **backend_kwargs)
        g.add_argument("--open-type", **cache_kwargs["open_type"])
        return parser

class AsyncEngineArgs(EngineArgs):
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--log", action=argparse.BooleanOptionalAction)
        return parser
""",
    "vllm/entrypoints/openai/cli_args.py": """
from vllm.config.utils import config

@config
class BaseFrontendArgs:
    tool_call_parser: str | None = None

    @classmethod
    def _customize_cli_kwargs(cls, frontend_kwargs):
        frontend_kwargs["tool_call_parser"]["metavar"] = "x"

@config
class FrontendArgs(BaseFrontendArgs):
    port: int = 8000
    ssl: bool = False

def make_arg_parser(parser):
    parser.add_argument("model_tag", nargs="?")
    parser.add_argument("--servers", "-s", type=int, default=None)
    parser.add_argument("--headless", action="store_true")
""",
    "vllm/tool_parsers/__init__.py": '_TOOL_PARSERS_TO_REGISTER = {"one": ("f", "C"), "two": ("f", "C")}\n',
    "vllm/reasoning/__init__.py": '_REASONING_PARSERS_TO_REGISTER = {"r": ("f", "C")}\n',
    "vllm/distributed/kv_transfer/kv_connector/factory.py": """
class F:
    @classmethod
    def register_connector(cls, name, module_path, class_name): ...

F.register_connector("NixlLike", "m", "C")
""",
}

SGLANG = {
    "sglang/srt/server_args.py": """
import argparse, json
from sglang.srt.arg_groups.arg_utils import A, Arg

BACKENDS = ["x", "y"]
MORE = BACKENDS + ["z"]

class ServerArgs:
    model_path: A[str, Arg(help="h", aliases=["--model"])]
    tp_size: A[int, Arg(help="h", cli_name="--tensor-parallel-size", aliases=["--tp-size", "--tp"])] = 1
    disaggregation_transfer_backend: A[str, Arg(help="h", choices=MORE)] = "x"
    level: A[Literal[0, 1], "h"] = 0
    hidden: A[int, Arg(no_cli=True)] = 0
    quiet: A[bool, "h"] = False
    pairs: A[Optional[Dict], Arg(help="h", type_parser=json.loads)] = None
    tool_call_parser: Optional[str] = None

    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--tool-call-parser", type=str, choices=["auto"] + parsers())
        parser.add_argument("--reasoning-parser", type=str, choices=list(R.DetectorMap.keys()))
        parser.add_argument("--old", action=Deprecated)
        parser.add_argument("--mode", type=str, choices=BACKENDS)
""",
    "sglang/srt/function_call/function_call_parser.py": "class P:\n    ToolCallParserEnum: Dict[str, X] = {'p': A, 'q': B}\n",
    "sglang/srt/parser/reasoning_parser.py": "class R:\n    DetectorMap: Dict[str, X] = {'r': A}\n",
}

LLAMACPP = {
    "llama.cpp/common/arg.cpp": r"""
#include <x>
static const std::vector<ggml_type> kv_cache_types = { GGML_TYPE_F16, GGML_TYPE_Q8_0, };
bool u::is_truthy(const std::string & value) { return value == "on" || value == "1"; }
bool u::is_falsey(const std::string & value) { return value == "off"; }
void f() {
    add_opt(common_arg(
        {"-c", "--ctx-size"}, "N", // "no"
        string_format("size { (default: %d)", 4),
        [](common_params & params, int value) { params.n = value; }
    ).set_env("X"));
    add_opt(common_arg({"--own"}, "only elsewhere", [](common_params & params) { params.o = "}"; }).set_examples({LLAMA_EXAMPLE_CLI}));
    add_opt(common_arg({"-p", "--prompt"}, "P", "help", [](common_params & p, const std::string & v) { p.p = v; }).set_excludes({LLAMA_EXAMPLE_SERVER}));
    add_opt(common_arg({"--repack"}, {"-nr", "--no-repack"}, "help", [](common_params & p, bool v) { p.r = v; }));
    add_opt(common_arg({"--flash"}, "[on|off]", "help", [](common_params & p, const std::string & v) {
        if (is_truthy(v)) { p.f = 1; } else if (is_falsey(v)) { p.f = 0; }
    }).set_examples({LLAMA_EXAMPLE_SERVER, LLAMA_EXAMPLE_CLI}));
    add_opt(common_arg({"--cache-type"}, "TYPE", "help", [](common_params & p, const std::string & v) { p.t = kv_cache_type_from_str(v); }));
    add_opt(common_arg({"--split"}, "{none,row}", "help", [](common_params & p, const std::string & v) {
        if (v == "none") { p.s = 0; } else if (v == "row") { p.s = 1; }
    }));
    add_opt(common_arg({"--hint-only"}, "{a,b}", R"(raw ")", [](common_params & p, const std::string & v) { p.h = v; }));
}
""",
}


class Extract(unittest.TestCase):
    maxDiff = None

    def test_vllm(self):
        got = vllm.extract(VLLM)
        self.assertEqual(got["flags"], {
            "block": {"type": "int", "aliases": ["b"]},
            "kv-type": {"type": "text", "choices": ["auto", "small"]},
            "reuse": {"type": "switch", "negated": True},
            "extra": {"type": "json"},
            "backend": {"type": "any"},
            "open-type": {"type": "any"},
            "log": {"type": "switch", "negated": True},
            "tool-call-parser": {"type": "any"},
            "port": {"type": "int"},
            "ssl": {"type": "switch", "negated": True},
            "servers": {"type": "int", "aliases": ["s"]},
            "headless": {"type": "switch"},
        })
        self.assertEqual((got["tools"], got["reasoning"], got["connectors"]), (["one", "two"], ["r"], ["NixlLike"]))

    def test_vllm_pairs(self):
        paired = VLLM | {
            "vllm/utils/argparse_utils.py": "class EnableDisableAction: ...\n",
            "vllm/entrypoints/openai/cli_args.py": VLLM["vllm/entrypoints/openai/cli_args.py"].replace("ssl", "enable_ssl"),
        }
        flags = vllm.extract(paired)["flags"]
        self.assertEqual(flags["enable-ssl"], {"type": "switch", "aliases": ["disable-ssl"], "negated": True})
        self.assertEqual(flags["reuse"], {"type": "switch", "negated": True})

    def test_sglang(self):
        got = sglang.extract(SGLANG)
        self.assertEqual(got["flags"], {
            "model-path": {"type": "text", "aliases": ["model"]},
            "tensor-parallel-size": {"type": "int", "aliases": ["tp", "tp-size"]},
            "disaggregation-transfer-backend": {"type": "text", "choices": ["x", "y", "z"]},
            "level": {"type": "text", "choices": ["0", "1"]},
            "quiet": {"type": "switch"},
            "pairs": {"type": "json"},
            "tool-call-parser": {"type": "text"},
            "reasoning-parser": {"type": "text"},
            "old": {"type": "any"},
            "mode": {"type": "text", "choices": ["x", "y"]},
        })
        self.assertEqual((got["tools"], got["reasoning"], got["connectors"]), (["p", "q", "auto"], ["r"], ["x", "y", "z"]))

    def test_llamacpp(self):
        self.assertEqual(llamacpp.extract(LLAMACPP)["flags"], {
            "ctx-size": {"type": "int", "aliases": ["c"]},
            "repack": {"type": "switch", "aliases": ["no-repack", "nr"]},
            "flash": {"type": "text", "choices": ["1", "off", "on"]},
            "cache-type": {"type": "text", "choices": ["f16", "q8_0"]},
            "split": {"type": "text", "choices": ["none", "row"]},
            "hint-only": {"type": "text"},
        })

    def test_what_cannot_be_read_is_said(self):
        broken = VLLM | {"vllm/tool_parsers/__init__.py": "_TOOL_PARSERS_TO_REGISTER = {**other, 'one': 1}\n"}
        with self.assertRaisesRegex(ValueError, "not all names"):
            vllm.extract(broken)
        with self.assertRaisesRegex(ValueError, "no ToolCallParserEnum"):
            sglang.extract({k: v for k, v in SGLANG.items() if "function_call" not in k})

    def test_merge_and_dump(self):
        def release(version, **flags):
            return {"flags": flags, "tools": ["t"], "reasoning": [], "connectors": [], "features": [], "release": {"version": version}}

        got = generate.merge("vllm", [
            release("1", old={"type": "int"}, same={"type": "int"}, grown={"type": "text", "choices": ["a"]}),
            release("2", same={"type": "int"}, grown={"type": "text", "choices": ["a", "b"]}),
        ])
        self.assertEqual(got["flags"], {
            "grown": [{"type": "text", "choices": ["a", "b"], "in": 2}, {"type": "text", "choices": ["a"], "in": 1}],
            "old": [{"type": "int", "in": 1}],
            "same": [{"type": "int"}],
        })
        self.assertEqual(got["tools"], {"t": 0})
        text = generate.dump(got)
        self.assertEqual(generate.json.loads(text), got)
        self.assertIn('\n  "same":[{"type":"int"}]\n', text)
        self.assertRegex(generate.sums({"b": "x", "a": "y"}), "^[0-9a-f]{64}  a.json\n[0-9a-f]{64}  b.json\n$")

    def test_index(self):
        fetch.os.environ["PIP_INDEX_URL"] = "http://127.0.0.1:1/simple/"
        try:
            self.assertEqual(fetch.index_url(), "http://127.0.0.1:1/simple")
        finally:
            del fetch.os.environ["PIP_INDEX_URL"]


if __name__ == "__main__":
    unittest.main()
