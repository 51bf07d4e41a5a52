"""Reference for the native engine: a float32 forward of a Llama model over the dequantised weights of its GGUF file.

    python reference.py MODEL.gguf OUT

It continues every line of prompts.txt greedily by 64 tokens and writes OUT/reference.json (tokens, and the eight best logits at every
position) and OUT/reference.f32 (whole rows of logits at some positions). It shares no code with the engine: keys and values stay
float32, activations are not quantised, and the sums are numpy's.
"""
import hashlib
import json
import os
import struct
import sys

import numpy as np

NEW, TOP, EVERY = 64, 8, 16


class GGUF:
    def __init__(self, path):
        self.data = np.memmap(path, dtype=np.uint8, mode="r")
        self.raw = memoryview(self.data)
        self.at = 0
        magic, version, tensors, keys = self.read("<4sIQQ")
        assert magic == b"GGUF" and version in (2, 3), "not a GGUF file"
        self.keys = {}
        for _ in range(keys):
            name = self.text()
            (kind,) = self.read("<I")
            self.keys[name] = self.value(kind)
        table = []
        for _ in range(tensors):
            name = self.text()
            (n,) = self.read("<I")
            dims = self.read(f"<{n}Q")
            table.append((name, dims, *self.read("<IQ")))
        align = self.keys.get("general.alignment", 32)
        start = (self.at + align - 1) // align * align
        self.tensors = {name: (dims, kind, start + off) for name, dims, kind, off in table}

    def read(self, fmt):
        v = struct.unpack_from(fmt, self.raw, self.at)
        self.at += struct.calcsize(fmt)
        return v

    def text(self):
        (n,) = self.read("<Q")
        s = bytes(self.raw[self.at : self.at + n])
        self.at += n
        return s.decode("utf-8", "surrogateescape")

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            (kind,) = self.read("<I")
            (n,) = self.read("<Q")
            return [self.value(kind) for _ in range(n)]
        fmt = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}[kind]
        return self.read("<" + fmt)[0]

    def tensor(self, name):
        """Dequantised to float32, shape (rows, columns)."""
        dims, kind, off = self.tensors[name]
        n = int(np.prod(dims))

        def blocks(size, per=32):
            return np.frombuffer(self.raw, np.uint8, n // per * size, off).reshape(-1, size)

        def half(b):
            return np.ascontiguousarray(b).view(np.float16).astype(np.float32)

        if kind == 0:
            w = np.frombuffer(self.raw, np.float32, n, off)
        elif kind == 1:
            w = np.frombuffer(self.raw, np.float16, n, off).astype(np.float32)
        elif kind == 30:
            w = (np.frombuffer(self.raw, np.uint16, n, off).astype(np.uint32) << 16).view(np.float32)
        elif kind == 8:
            b = blocks(34)
            w = half(b[:, :2]) * b[:, 2:].view(np.int8).astype(np.float32)
        elif kind in (2, 3):
            head = 2 if kind == 2 else 4
            b = blocks(head + 16)
            q = b[:, head:]
            q = np.concatenate([q & 15, q >> 4], axis=1).astype(np.float32)
            w = half(b[:, :2]) * (q - 8) if kind == 2 else half(b[:, :2]) * q + half(b[:, 2:4])
        else:
            raise SystemExit(f"tensor {name}: type {kind} is not known here")
        return w.reshape([int(d) for d in reversed(dims)])


class Llama:
    def __init__(self, g):
        k = lambda name, *default: g.keys.get("llama." + name, *default)
        self.layers, self.heads = k("block_count"), k("attention.head_count")
        self.kv = k("attention.head_count_kv", self.heads)
        self.dim = k("embedding_length")
        self.hd = k("attention.key_length", self.dim // self.heads)
        self.eps = np.float32(k("attention.layer_norm_rms_epsilon"))
        rot = k("rope.dimension_count", self.hd)
        self.freqs = float(k("rope.freq_base", 10000.0)) ** (-np.arange(0, rot, 2, dtype=np.float64) / rot)
        if "rope_freqs.weight" in g.tensors:
            self.freqs = self.freqs / g.tensor("rope_freqs.weight").astype(np.float64)
        if k("rope.scaling.type", "none") == "linear":
            self.freqs = self.freqs / k("rope.scaling.factor", 1.0)
        self.rot = rot
        names = ["attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down"]
        self.w = [{n: g.tensor(f"blk.{i}.{n}.weight") for n in names} for i in range(self.layers)]
        self.embed, self.norm = g.tensor("token_embd.weight"), g.tensor("output_norm.weight")
        self.out = g.tensor("output.weight") if "output.weight" in g.tensors else self.embed

    def rms(self, x, w):
        return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self.eps) * w

    def rope(self, x, pos):
        """x: (tokens, heads, head size); neighbours are turned together."""
        a = pos[:, None].astype(np.float64) * self.freqs
        c, s = np.cos(a).astype(np.float32)[:, None], np.sin(a).astype(np.float32)[:, None]
        y = x.copy()
        even, odd = x[..., 0 : self.rot : 2], x[..., 1 : self.rot : 2]
        y[..., 0 : self.rot : 2] = even * c - odd * s
        y[..., 1 : self.rot : 2] = even * s + odd * c
        return y

    def forward(self, seqs, caches, pos):
        """seqs: lists of tokens; caches: per sequence, per layer [keys, values]; pos: their lengths. Returns logits of all tokens."""
        where = np.concatenate([np.arange(p, p + len(s)) for s, p in zip(seqs, pos)])
        cuts = np.cumsum([0] + [len(s) for s in seqs])
        x = self.embed[np.concatenate(seqs)]
        for i, w in enumerate(self.w):
            h = self.rms(x, w["attn_norm"])
            q = self.rope((h @ w["attn_q"].T).reshape(-1, self.heads, self.hd), where)
            k = self.rope((h @ w["attn_k"].T).reshape(-1, self.kv, self.hd), where)
            v = (h @ w["attn_v"].T).reshape(-1, self.kv, self.hd)
            out = np.empty_like(q)
            for j, cache in enumerate(caches):
                a, b = cuts[j], cuts[j + 1]
                if cache[i] is None:
                    cache[i] = [k[a:b], v[a:b]]
                else:
                    cache[i] = [np.concatenate([cache[i][0], k[a:b]]), np.concatenate([cache[i][1], v[a:b]])]
                out[a:b] = self.attend(q[a:b], *cache[i], where[a:b])
            x = x + out.reshape(len(x), -1) @ w["attn_output"].T
            h = self.rms(x, w["ffn_norm"])
            g = h @ w["ffn_gate"].T
            x = x + (g / (1 + np.exp(-g)) * (h @ w["ffn_up"].T)) @ w["ffn_down"].T
        return self.rms(x, self.norm) @ self.out.T

    def attend(self, q, k, v, where):
        r = self.heads // self.kv
        q = q.reshape(len(q), self.kv, r, self.hd)
        s = np.einsum("tgrd,sgd->tgrs", q, k) / np.float32(np.sqrt(self.hd))
        s = np.where(np.arange(len(k)) <= where[:, None, None, None], s, -np.inf)
        s = np.exp(s - s.max(axis=-1, keepdims=True))
        s /= s.sum(axis=-1, keepdims=True)
        return np.einsum("tgrs,sgd->tgrd", s, v).reshape(len(q), self.heads, self.hd)


def encode(vocabulary, text):
    """Longest pieces first: not the model's own tokens, but tokens of the model."""
    out = []
    text = text.replace(" ", "Ġ")
    while text:
        n = next(n for n in range(len(text), 0, -1) if text[:n] in vocabulary)
        out.append(vocabulary[text[:n]])
        text = text[n:]
    return out


def main():
    path, out = sys.argv[1:3]
    g = GGUF(path)
    model = Llama(g)
    vocabulary = {w: i for i, w in enumerate(g.keys["tokenizer.ggml.tokens"])}
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "prompts.txt")) as f:
        prompts = [encode(vocabulary, line.rstrip("\n")) for line in f]
    caches = [[None] * model.layers for _ in prompts]
    tokens, tops, rows = [list(p) for p in prompts], [[] for _ in prompts], []
    os.makedirs(out, exist_ok=True)
    step = list(prompts)
    with open(os.path.join(out, "reference.f32.tmp"), "wb") as full:
        for n in range(NEW):
            pos = [len(t) - len(s) for t, s in zip(tokens, step)]
            logits = model.forward(step, caches, pos)
            logits = logits[np.cumsum([len(s) for s in step]) - 1]
            best = np.argpartition(-logits, TOP, axis=1)[:, :TOP]
            for j, row in enumerate(logits):
                order = best[j][np.argsort(-row[best[j]], kind="stable")]
                tops[j].append([[int(t), float(row[t])] for t in order])
                if n % EVERY == 0:
                    rows.append([j, n])
                    full.write(row.astype("<f4").tobytes())
                tokens[j].append(int(order[0]))
            step = [t[-1:] for t in tokens]
    with open(path, "rb") as f:
        sha = hashlib.file_digest(f, "sha256").hexdigest()
    seqs = [{"prompt": len(p), "tokens": t[:-1], "top": top} for p, t, top in zip(prompts, tokens, tops)]
    with open(os.path.join(out, "reference.json.tmp"), "w") as f:
        json.dump({"sha256": sha, "vocabulary": len(model.out), "sequences": seqs, "rows": rows}, f)
    os.replace(os.path.join(out, "reference.f32.tmp"), os.path.join(out, "reference.f32"))
    os.replace(os.path.join(out, "reference.json.tmp"), os.path.join(out, "reference.json"))


main()
