"""The reference: Hugging Face's tokenizers, told by the Go tests what to do."""
import base64, json, sys
import tokenizers as hf
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers


def encode(path, strings, out):
    """Ids of every string: special tokens as text, as tokens, with those that the model adds; and the text that the tokens make again."""
    tok = hf.Tokenizer.from_file(path)
    strings = json.load(open(strings, encoding="utf-8"))
    special = [e.ids for e in tok.encode_batch(strings, add_special_tokens=False)]
    whole = [e.ids for e in tok.encode_batch(strings, add_special_tokens=True)]
    text = tok.decode_batch(special, skip_special_tokens=False)
    tok.encode_special_tokens = True
    plain = [e.ids for e in tok.encode_batch(strings, add_special_tokens=False)]
    json.dump({"plain": plain, "special": special, "whole": whole, "text": text}, open(out, "w", encoding="utf-8"))


def tekken(strings, dir):
    """Ids of every string by each tekken.json that Mistral's library carries, copied to dir beside them."""
    import glob, os, shutil
    import mistral_common
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer
    strings = json.load(open(strings, encoding="utf-8"))
    for f in glob.glob(os.path.dirname(mistral_common.__file__) + "/data/tekken_*.json"):
        tok = Tekkenizer.from_file(f)
        ids = [tok.encode(s, bos=True, eos=False) for s in strings]
        pieces = [tok.id_to_piece(i) for i in range(tok.num_special_tokens)]
        to = shutil.copy(f, dir)
        json.dump({"size": tok.n_words, "pieces": pieces, "ids": ids, "text": [tok.decode(x) for x in ids]}, open(to + ".ids", "w", encoding="utf-8"))


def charsmap(corpus, dir):
    """SentencePiece's compiled rules nmt_nfkc, out of a model of its own making: field 3 (normalizer), of that field 2."""
    import sentencepiece
    sentencepiece.SentencePieceTrainer.train(input=corpus, model_prefix=dir + "/spm", vocab_size=400, model_type="unigram",
                                             normalization_rule_name="nmt_nfkc", minloglevel=2)

    def fields(b):
        i = 0

        def varint():
            nonlocal i
            v = s = 0
            while True:
                c = b[i]
                i += 1
                v |= (c & 127) << s
                s += 7
                if c < 128:
                    return v
        while i < len(b):
            key = varint()
            if key & 7 == 2:
                n = varint()
                yield key >> 3, b[i:i + n]
                i += n
            elif key & 7 == 0:
                varint()
            else:
                i += 8 if key & 7 == 1 else 4
    model = open(dir + "/spm.model", "rb").read()
    return next(v for k, v in fields(next(v for k, v in fields(model) if k == 3)) if k == 2)


def train(corpus, dir):
    """Makes a vocabulary of each kind."""
    lines = open(corpus, encoding="utf-8").read().split("\n")
    N, P, D = normalizers, pre_tokenizers, decoders

    def save(name, model, trainer, norm=None, pre=None, dec=None, post=None, added=()):
        tok = hf.Tokenizer(model)
        if norm is not None:
            tok.normalizer = norm
        if pre is not None:
            tok.pre_tokenizer = pre
        if dec is not None:
            tok.decoder = dec
        tok.train_from_iterator(lines, trainer)
        tok.add_special_tokens([AddedToken("<|end|>", special=True), AddedToken("<mask>", special=True, lstrip=True)])
        tok.add_tokens([AddedToken("  \n"), AddedToken("Tool", single_word=True), AddedToken("<think>", normalized=False), *added])
        if post is not None:
            tok.post_processor = post(tok)
        tok.save(f"{dir}/{name}.json")

    def around(tok):
        i = tok.token_to_id("<|end|>")
        return processors.TemplateProcessing(single="<|end|> $A <|end|>", special_tokens=[("<|end|>", i)])
    byte = P.ByteLevel.alphabet()
    bpe = lambda n=1500, **k: trainers.BpeTrainer(vocab_size=n, show_progress=False, **k)
    raw = ["<0x%02X>" % b for b in range(256)]

    save("bpe-bytes", models.BPE(), bpe(initial_alphabet=byte, special_tokens=["<s>"]), pre=P.ByteLevel(add_prefix_space=True), dec=D.ByteLevel(), post=around,
         added=[AddedToken("<pad>", special=True, rstrip=True)])
    save("bpe-digits-nfd", models.BPE(), bpe(initial_alphabet=byte), norm=N.NFD(), dec=D.ByteLevel(),
         pre=P.Sequence([P.Digits(individual_digits=True), P.ByteLevel(add_prefix_space=False)]))
    save("bpe-deepseek-coder", models.BPE(), bpe(initial_alphabet=byte), dec=D.ByteLevel(),
         pre=P.Sequence([P.Split(Regex("[\r\n]"), "isolated"), P.Split(Regex(r"\s?\p{L}+"), "isolated"), P.Split(Regex(r"\s?\p{P}+"), "isolated"),
                         P.Split(Regex("[一-龥ࠀ-一가-퟿]+"), "isolated"), P.Digits(individual_digits=True), P.ByteLevel(add_prefix_space=False, use_regex=False)]))
    save("bpe-bloom", models.BPE(), bpe(initial_alphabet=byte), norm=N.NFKD(), dec=D.ByteLevel(),
         pre=P.Sequence([P.Split(Regex(r" ?[^(\s|[.,!?…。，、।۔،])]+"), "removed", invert=True), P.ByteLevel(add_prefix_space=False, use_regex=False)]))
    upper, lower = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
    tail = r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    save("bpe-tekken", models.BPE(ignore_merges=True), bpe(initial_alphabet=byte), dec=D.ByteLevel(),
         pre=P.Sequence([P.Split(Regex(f"{upper}*{lower}+|{upper}+{lower}*|{tail}"), "isolated"), P.ByteLevel(add_prefix_space=False, use_regex=False)]))
    save("bpe-fallback-first", models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"), bpe(special_tokens=["<unk>", *raw]),
         pre=P.Metaspace(prepend_scheme="first", split=True), dec=D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)]))
    save("bpe-unk-suffix", models.BPE(unk_token="[UNK]", end_of_word_suffix="</w>"), bpe(special_tokens=["[UNK]"], end_of_word_suffix="</w>", limit_alphabet=60),
         norm=N.Sequence([N.NFC(), N.Lowercase()]), pre=P.Sequence([P.Whitespace(), P.Punctuation("isolated")]), dec=D.BPEDecoder(suffix="</w>"))
    save("bpe-fused-prefix", models.BPE(unk_token="[UNK]", fuse_unk=True, continuing_subword_prefix="##"),
         bpe(special_tokens=["[UNK]"], continuing_subword_prefix="##", limit_alphabet=60), norm=N.Sequence([N.NFKD(), N.StripAccents()]),
         pre=P.WhitespaceSplit(), dec=D.WordPiece())
    for by in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        save("bpe-split-" + by, models.BPE(unk_token="[UNK]"), bpe(600, special_tokens=["[UNK]"], limit_alphabet=80), dec=D.Fuse(),
             pre=P.Sequence([P.Punctuation(by), P.Split(Regex(r"[aeiou]+\d*"), by, invert=by in ("removed", "contiguous")), P.CharDelimiterSplit("x")]))
    uni = lambda **k: trainers.UnigramTrainer(vocab_size=1200, show_progress=False, unk_token="<unk>", **k)
    save("unigram-t5", models.Unigram(), uni(special_tokens=["<unk>", "</s>"]), pre=P.Metaspace(), dec=D.Metaspace(), post=lambda t: processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", t.token_to_id("</s>"))]), norm=N.Sequence([N.Precompiled(charsmap(corpus, dir)), N.Replace(Regex(" {2,}"), " ")]))
    save("unigram-xlm", models.Unigram(), uni(special_tokens=["<unk>"]), norm=N.Sequence([N.Nmt(), N.NFKC(), N.Replace(Regex(r"\s+"), " ")]),
         pre=P.Sequence([P.WhitespaceSplit(), P.Metaspace()]), dec=D.Metaspace())
    tok = hf.Tokenizer.from_file(f"{dir}/unigram-t5.json")
    m = json.loads(tok.to_str())
    have = {p for p, _ in m["model"]["vocab"]}
    m["model"]["vocab"] += [[b, -20.0] for b in raw if b not in have]
    m["model"]["byte_fallback"] = True
    m["decoder"] = {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]}
    n = len(m["model"]["vocab"])
    for a in m["added_tokens"]:
        if a["content"] not in have:
            a["id"], n = n, n + 1
    json.dump(m, open(f"{dir}/unigram-fallback.json", "w"))
    wp = lambda **k: trainers.WordPieceTrainer(vocab_size=1500, show_progress=False, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"], **k)
    bert = lambda t: processors.BertProcessing(("[SEP]", t.token_to_id("[SEP]")), ("[CLS]", t.token_to_id("[CLS]")))
    save("wordpiece-uncased", models.WordPiece(unk_token="[UNK]"), wp(), norm=N.BertNormalizer(), pre=P.BertPreTokenizer(), dec=D.WordPiece(cleanup=False), post=bert)
    save("wordpiece-cased", models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=12), wp(limit_alphabet=100), norm=N.BertNormalizer(lowercase=False),
         pre=P.BertPreTokenizer(), dec=D.WordPiece(cleanup=False), post=bert)
    save("wordlevel", models.WordLevel(unk_token="<unk>"), trainers.WordLevelTrainer(vocab_size=1500, show_progress=False, special_tokens=["<unk>"]),
         norm=N.Sequence([N.NFC(), N.Prepend(">")]), pre=P.Whitespace())
    save("wordlevel-bytes", models.WordLevel(unk_token="<unk>"), trainers.WordLevelTrainer(vocab_size=1500, show_progress=False, special_tokens=["<unk>"]),
         pre=P.Sequence([P.ByteLevel(add_prefix_space=False), P.Digits()]), dec=D.ByteLevel())


def spm(corpus, dir, strings, out):
    """A BPE model with byte fallback of SentencePiece's own making, and its ids."""
    import sentencepiece
    sentencepiece.SentencePieceTrainer.train(input=corpus, model_prefix=dir + "/bpe", vocab_size=1500, model_type="bpe", byte_fallback=True,
                                             normalization_rule_name="identity", remove_extra_whitespaces=False, minloglevel=2)
    sp = sentencepiece.SentencePieceProcessor(model_file=dir + "/bpe.model")
    n = sp.get_piece_size()
    kind = lambda i: 2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 6 if sp.is_byte(i) else 1
    json.dump({"tokens": [sp.id_to_piece(i) for i in range(n)], "scores": [sp.get_score(i) for i in range(n)], "types": [kind(i) for i in range(n)],
               "ids": [sp.encode(s) for s in json.load(open(strings, encoding="utf-8"))]}, open(out, "w"))


def speed(path, text, out):
    """Bytes a second of one thread."""
    import time
    tok = hf.Tokenizer.from_file(path)
    text = open(text, encoding="utf-8").read()
    chunks = [text[i:i + 2048] for i in range(0, len(text), 2048)]
    begin = time.process_time()
    for c in chunks:
        tok.encode(c, add_special_tokens=False)
    json.dump(len(text.encode()) / (time.process_time() - begin), open(out, "w"))


globals()[sys.argv[1]](*sys.argv[2:])
