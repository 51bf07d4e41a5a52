#!/usr/bin/env python3
"""Makes nodes/text/render/testdata/deepseek_v3_2.json anew: our conversations as mlx-lm's copy of DeepSeek's program writes them.

    pip download mlx-lm==0.32.2 --no-deps && unzip mlx_lm-*.whl 'mlx_lm/chat_templates/*'
    PYTHONPATH=. python3 deepseek_v3_2.py > testdata/deepseek_v3_2.json
"""
import copy, importlib.util, json, sys, types

# The module wants one function of transformers, which is not used here.
for name in ("transformers", "transformers.utils", "transformers.utils.chat_template_utils"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["transformers.utils.chat_template_utils"].get_json_schema = None
spec = importlib.util.find_spec("mlx_lm.chat_templates.deepseek_v32")
reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reference)


def user(text): return {"role": "user", "content": text}
def system(text): return {"role": "system", "content": text}
def tool(text, n=0): return {"role": "tool", "tool_call_id": f"c{n}", "content": text}


def says(text, thought=None, *calls):
    m = {"role": "assistant", "content": text}
    if thought is not None:
        m["reasoning_content"] = thought
    if calls:
        m["tool_calls"] = [{"id": f"c{i}", "type": "function", "function": {"name": n, "arguments": json.dumps(a, ensure_ascii=False)}} for i, (n, a) in enumerate(calls)]
    return m


weather = {"type": "function", "function": {"name": "weather", "description": "Wetter für \"Orte\" <b>", "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 1.0}}, "required": ["city"]}}}
ping = {"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}}}
conversations = {
    "one": [user("Hello")],
    "system": [system("Be brief."), user("Hello 日本 🙂")],
    "empty system": [system(""), user("Hi")],
    "turns": [user("a"), says("b"), user("c"), says("d"), user("e")],
    "markup": [user("</think> <｜DSML｜invoke> <｜User｜> {{ 7*7 }}")],
    "thought": [user("a"), says("b", "why"), user("c")],
    "call": [user("Ulm?"), says(None, "look", ("weather", {"city": "Ulm", "days": 2})), tool("rain")],
    "call with text": [user("Ulm?"), says("I look.", "hm", ("weather", {"city": "Ulm \"x\"\n<y>"})), tool("{\"t\": 1.0}")],
    "two calls": [user("both"), says("", "", ("weather", {"city": "Ulm", "x": [1, {"y": None}], "z": True}), ("ping", {})), tool("a"), tool("b", 1)],
    "after results": [user("Ulm?"), says(None, "l", ("weather", {"city": "Ulm"})), tool("rain"), says("It rains.", "so")],
    "next question": [user("Ulm?"), says(None, "l", ("weather", {"city": "Ulm"})), tool("rain"), says("It rains.", "so"), user("And now?")],
    "chain": [user("x"), says(None, "1", ("ping", {})), tool("p"), says(None, "2", ("ping", {})), tool("q")],
    "system in the middle": [user("a"), says("b"), system("c"), user("d")],
}
out = []
for name, messages in conversations.items():
    for thinking in (False, True):
        for tools in (None, [weather], [weather, ping]):
            if tools == [weather, ping] and not name.startswith(("one", "two", "system")):
                continue
            m = copy.deepcopy(messages)
            if tools:  # engines put tools into the first message, which they make if it is no system message
                if m[0]["role"] != "system":
                    m.insert(0, {"role": "system"})
                m[0]["tools"] = tools
            text = reference.encode_messages(m, thinking_mode="thinking" if thinking else "chat")
            out.append({"name": name, "thinking": thinking, "messages": messages, "tools": tools, "want": text})
json.dump({"source": "mlx-lm 0.32.2, chat_templates/deepseek_v32.py", "cases": out}, sys.stdout, ensure_ascii=False, indent=1)
