# SPDX-License-Identifier: Apache-2.0
"""Makes the golden files of the tokenizer tests: ids and texts as Hugging Face tokenizers and sentencepiece give them.

    python -m venv /tmp/venv && /tmp/venv/bin/pip install tokenizers==0.23.3 sentencepiece==0.2.3 zstandard
    /tmp/venv/bin/python tools/oracle/make_tokenizer_golden.py

Reads tests/data/tokenizers and models/fable-moe-18m, writes tests/golden/tokenizers. With --synthetic it also writes the
small made-up tokenizers of tests/data/tokenizers/synthetic anew.
"""

import argparse
import hashlib
import io
import json
import random
import tempfile
from pathlib import Path

import sentencepiece
import tokenizers
import zstandard
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data/tokenizers"
SYNTHETIC = DATA / "synthetic"
GOLDEN = ROOT / "tests/golden/tokenizers"
FABLE = ROOT / "models/fable-moe-18m/tokenizer.json"

QWEN2_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA3_PATTERN = QWEN2_PATTERN.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
O200K_PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# The letters of DeepSeek-V2's tokenizer.json; the three ends that NFC would change are written as code points.
DEEPSEEK_LETTERS = (
    r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-"
    "\u1f7dᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3ῖ-\u1fdbῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎ"
    "ꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"
)

TEXTS = [
    "", " ", "  ", "     ", "\t", "\n", "\r\n", "\n\n\n", " \n", "\n ", "   \n\n  x", "\r", "a\r\nb\rc\nd", "\t\tx\t",
    "Hello, world!", "hello world", " hello", "hello ", "  hello  world  ", "Hello\n\nWorld\n", "x", "The quick brown fox.",
    "I'm you're he's we've they'll I'd don't", "I'M YOU'RE HE'S WE'VE THEY'LL I'D DON'T", "it'ſ 'ſ 'S 's 'Re 'LL", "''''s's",
    "’s isn’t", "1234567890", "3.14159 1,000,000 1e-9 0xFF", "Year 2024, 100% of $5.99 (approx.)", "½ ² ³ Ⅷ ① ٣ ३ ๓ 三 𝟛 १२३",
    "def f(x):\n    return x**2  # comment\n\n\nclass A:\n\tpass\n", "for (int i = 0; i < n; ++i) { a[i] += b->c; }",
    "https://example.com/path?query=1&x=%20#frag", "user@example.org", "<html><body>&nbsp;</body></html>",
    "{\"key\": [1, 2, {\"a\": null}]}", "\\n \\t \\\\ \\u0041", "`code` **bold** _it_ ~~s~~ ~ ^ |",
    "café naïve résumé", "cafe\u0301 nai\u0308ve re\u0301sume\u0301", "a\u0323\u0301 a\u0301\u0323 q\u0307\u0323", "\u0301 alone",
    "Ångström \u212bngstr\u00f6m \u2126 \u212a", "ﬁ ﬂ ﬀ ﬃ ﬆ", "ĲĳŁłßẞſǅǆİı", "Việt Nam tiếng Việt", "Zażółć gęślą jaźń",
    "Ελληνικά ώ Ώ ΐ", "Русский текст, ёжик Ёлка й и\u0306", "Українська ґ ї", "Հայերեն ქართული", "𐐀𐑏 𞤀𞥃",
    "中文分词测试。你好，世界！", "日本語のテキスト、カタカナ・ひらがな。", "か\u3099は\u309aガ", "한국어 텍스트 \u1112\u1161\u11ab", "각\u11a8 가\u11a8",
    "汉字abc汉字123", "\U00020000\U0002f800 㐀 \U000323af \U0002ebf0", "العربية نصٌّ مُشَكَّل", "עִבְרִית שָׁלוֹם", "فارسی می\u200cخواهم",
    "हिन्दी क्षत्रिय \u0928\u093c \u0929", "বাংলা ক্ষ \u09af\u09bc", "தமிழ் கொ \u0b95\u0bc6\u0bbe", "ไทยภาษาไทยกำ", "ລາວ မြန်မာ ខ្មែរ", "བོད་ཡིག",
    "😀 😃😄", "👨\u200d👩\u200d👧\u200d👦 family", "🏳️\u200d🌈🇩🇪🇯🇵", "👍🏽 1️⃣ ❤️ ☺", "e\u20dd \u2460 \u24b6",
    "\u00a0nbsp\u00a0here", "\u1680\u2000\u2001\u2002\u2003\u2009\u200a\u202f\u205f\u3000", "a\u3000b", "mong\u180eol \u180e x",
    "zero\u200bwidth\u200c\u200d\u2060\ufeff", "\ufeffBOM first", "nul\x00in side\x00\x00", "\x01\x02\x1f\x7f\x80\x85\x9f", "line\u2028sep\u2029par\x0b\x0c",
    "\U0010ffff\U000f0000\ue000\uffff\ufffe", "\ufffd\ufffd", "\u0378\u0530\u05ff\U0001ffff", "a" * 50, "ab" * 120, "=" * 80, "-" * 31 + "\n",
    "." * 3 + "!" * 7 + "?" * 9, " " * 33 + "x", "\n" * 17 + " ", " \n" * 9, "  \t \u00a0 \n \r ", "aaaaAAAAbbbbBBBB" * 6, "0" * 40,
    "supercalifragilisticexpialidocious" * 4, "pneumonoultramicroscopicsilicovolcanoconiosis", "AbCdEfGh iPhone McDonald XMLHttpRequest",
    "snake_case camelCase kebab-case SCREAMING_CASE", "don't won't CAN'T y'all'd've", "rock'n'roll 'tis '90s", "“quoted” ‘single’ «guillemets» „low“",
    "em—dash en–dash …ellipsis", "1st 2nd 3rd", "x²+y²=z² ∑∫√∞≈≠ αβγ", "£€¥₹₿ ©®™", "\u1c89\u1c8a \U00016d40 \U0001e5d0 \U00010d40\U00010d41 \u2427",
    "\u0898\u08d4 \u0c3c \u1ac1 \u32ff \ua7f2 \U00011938 \U00011935\U00011930", "x\u0327\u0301\u0323\u0345y" + "\u0301\u0316" * 12,
    "<|endoftext|>", "a<|endoftext|>b", "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "<|im_start|> <|im_end|><|im_end|>", "<|im_start|", "|im_end|>",
    "<think>\nhmm\n</think>\n\nok", "<tool_call>{}</tool_call>", "<|padding|> x |||IP_ADDRESS||| y |||EMAIL_ADDRESS|||", "<s>[INST] Hi [/INST]</s>", "<s> </s> <unk> <0x41>",
    "[INST] [/INST] [AVAILABLE_TOOLS]", "<｜begin▁of▁sentence｜>User: hi\n\nAssistant:<｜end▁of▁sentence｜>", "▁ ▁▁ a▁b ▁x", "Ġ Ċ ġ Ĭ ń", "<mask>a <mask> b<MASK>", "word wordx xword word.", "TAG  spaced  TAG\tTAG", "naïve NAÏVE nai\u0308ve",
    "\u2581\u2581", "q\u0323\u0307\u0323x", "\U0001f1e6\U0001f1e7\U0001f1e8", "ک\u064b\u0651 \u0651\u064b", "e\u0301" * 20, "가나다라마바사아자차카타파하" * 3, "的一是不了人我在有他这" * 4,
]


def long_texts():
    """A few thousand characters of mixed scripts: the order of merges in longer texts."""
    rng = random.Random(7)
    pool = [t for t in TEXTS if t]
    yield " ".join(rng.choice(pool) for _ in range(60))
    yield "".join(rng.choice(pool) for _ in range(60))
    alphabet = "aeiou bcd\n\t.,'\"0123  éß中文かな한😀\u0301\u200d" + "the and ing"
    yield "".join(rng.choice(alphabet) for _ in range(3000))
    yield "".join(chr(rng.choice([rng.randrange(32, 127), rng.randrange(0xA0, 0x3000), rng.randrange(0x4E00, 0x9FFF), rng.randrange(0x1F300, 0x1FAFF)])) for _ in range(800))


def all_texts():
    return TEXTS + list(long_texts())


def zstd_text(path, like=b""):
    """The unpacked file; `like` is the file that it was packed as a difference from."""
    prefix = zstandard.ZstdCompressionDict(like, dict_type=zstandard.DICT_TYPE_RAWCONTENT) if like else None
    return zstandard.ZstdDecompressor(dict_data=prefix).stream_reader(io.BytesIO(path.read_bytes())).read()


def mistral_model(version):
    path = DATA / f"mistral.tokenizer.model.{version}.zst"
    return zstd_text(path, b"" if version == "v3" else mistral_model("v3"))


def write(name, value):
    """One case a line, so that a difference of the unpacked files can be read."""
    lines = []
    for key, entry in value.items():
        if isinstance(entry, list):
            body = ",\n".join("  " + json.dumps(e, separators=(",", ":")) for e in entry)
            lines.append(f"{json.dumps(key)}: [\n{body}\n]")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(entry)}")
    GOLDEN.mkdir(parents=True, exist_ok=True)
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (GOLDEN / f"{name}.json.zst").write_bytes(zstandard.ZstdCompressor(level=19).compress(text.encode("ascii")))


def random_id_lists(ids, count, rng, longest=40):
    return [[rng.choice(ids) for _ in range(rng.randrange(1, longest))] for _ in range(count)]


def golden_hf(name, tokenizer, file):
    rng = random.Random(name)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    encode = []
    for text in all_texts():
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        with_special = tokenizer.encode(text, add_special_tokens=True).ids
        case = {"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=True)}
        if with_special != ids:
            case["special_ids"] = with_special
        shown = tokenizer.decode(ids, skip_special_tokens=False)
        if shown != case["decoded"]:
            case["shown"] = shown
        encode.append(case)
    known = sorted(set(tokenizer.get_vocab(with_added_tokens=True).values()))
    added = sorted(i for i in tokenizer.get_added_tokens_decoder())
    decode = []
    for ids in random_id_lists(known, 30, rng) + random_id_lists(known[:600] + added * 20, 30, rng) + [[]]:
        decode.append({"ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=True), "shown": tokenizer.decode(ids, skip_special_tokens=False)})
    write(name, {"file": file, "made_by": f"tokenizers {tokenizers.__version__}", "vocab_size": max(known) + 1, "encode": encode, "decode": decode})


def golden_sp(name, data, file):
    rng = random.Random(name)
    sp = sentencepiece.SentencePieceProcessor()
    sp.LoadFromSerializedProto(data)
    encode = []
    for text in all_texts():
        ids = sp.encode(text)
        encode.append({"text": text, "ids": ids, "decoded": sp.decode(ids), "special_ids": [sp.bos_id()] + ids})
    known = list(range(sp.get_piece_size()))
    spaces = [i for i in known if sp.id_to_piece(i).startswith("\u2581")][:200]
    decode = []
    for ids in random_id_lists(known, 30, rng) + random_id_lists(known[:300] + spaces, 60, rng) + [[]]:
        decode.append({"ids": ids, "decoded": sp.decode(ids)})
    write(name, {"file": file, "made_by": f"sentencepiece {sentencepiece.__version__}", "vocab_size": sp.get_piece_size(), "encode": encode, "decode": decode})


# ---- made-up tokenizers -------------------------------------------------------------------------------------------------


def training_text():
    rng = random.Random(3)
    words = (ROOT / "models/fable-moe-18m/eval.txt").read_text(encoding="utf-8").split("\n")[:400]
    return words + [rng.choice(TEXTS) for _ in range(1500)]


def train(tokenizer, size, special=(), byte_level=True):
    alphabet = pre_tokenizers.ByteLevel.alphabet() if byte_level else []
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=list(special), initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(training_text(), trainer)
    return json.loads(tokenizer.to_str())


def added(content, id, **flags):
    return {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True, **flags}


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def byte_level(**kwargs):
    return pre_tokenizers.ByteLevel(**{"add_prefix_space": False, "use_regex": False, **kwargs})


def make_deepseek():
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.Sequence([])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        split("[\r\n]"), split(DEEPSEEK_LETTERS), split(r"\s?[!-/:-~！-／：-～‘-‟　-。]+"), split(r"\s+$"), split("[一-龥ࠀ-一가-퟿]+"),
        pre_tokenizers.Digits(individual_digits=True), byte_level()])
    t.post_processor = processors.ByteLevel(add_prefix_space=True, trim_offsets=False, use_regex=True)
    t.decoder = decoders.ByteLevel(add_prefix_space=True, trim_offsets=True, use_regex=True)
    d = train(t, 1000)
    n = len(d["model"]["vocab"])
    d["added_tokens"] = [added("<｜begin▁of▁sentence｜>", n, normalized=True), added("<｜end▁of▁sentence｜>", n + 1, normalized=True), added("[INST]", n + 2, special=False, normalized=True)]
    return d


def make_llama_spm():
    """As Llama-2 and Mixtral are converted: whole text, byte fallback, template."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.pre_tokenizer = pre_tokenizers.Metaspace("▁", "never", True)  # only to keep training small
    d = train(t, 1200, ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)], byte_level=False)
    d["pre_tokenizer"] = None
    d["added_tokens"] = [added("<unk>", 0), added("<s>", 1), added("</s>", 2)]
    d["decoder"] = {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    d["post_processor"] = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}
    return d


def make_metaspace():
    """As Mistral v0.3: Metaspace at the first piece only; unknown characters not fused; legacy merges."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=False))
    t.pre_tokenizer = pre_tokenizers.Metaspace("▁", "first", True)
    t.decoder = decoders.Metaspace("▁", "first", True)
    d = train(t, 500, ["<unk>", "<s>"], byte_level=False)
    for word in ("中", "x", "é"):
        for merge in [m for m in d["model"]["merges"] if word in "".join(m)]:
            d["model"]["merges"].remove(merge)
        del d["model"]["vocab"][word]
    ids = {token: i for i, token in enumerate(sorted(d["model"]["vocab"], key=d["model"]["vocab"].get))}
    d["model"]["vocab"] = ids
    d["model"]["merges"] = [" ".join(m) for m in d["model"]["merges"]]
    d["added_tokens"] = [added("<unk>", 0), added("<s>", 1), added("<mask>", len(ids), lstrip=True)]
    return d


def make_normalized():
    """Normalizers and added tokens of every kind; a lossy tokenizer."""
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip(), normalizers.Replace("''", '"')])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("isolated"), pre_tokenizers.Digits(False), byte_level(add_prefix_space=True)])
    t.decoder = decoders.ByteLevel()
    d = train(t, 700)
    n = len(d["model"]["vocab"])
    d["added_tokens"] = [
        added("<mask>", n, lstrip=True), added("word", n + 1, single_word=True, special=False), added("TAG", n + 2, lstrip=True, rstrip=True, normalized=False, special=False),
        added("Naïve", n + 3, normalized=True, special=False), added("<|im_start|>", n + 4, rstrip=True), added("<|endoftext|>", n + 5), added("<|im_end|>", n + 6, normalized=True), added("<|im_", n + 7)]
    d["post_processor"] = {"type": "Sequence", "processors": [{"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}, {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<|im_end|>", "type_id": 0}}, {"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}], "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [n + 5], "tokens": ["<|endoftext|>"]}, "<|im_end|>": {"id": "<|im_end|>", "ids": [n + 6], "tokens": ["<|im_end|>"]}}}]}
    return d


def make_llama3():
    """As Llama 3: its pattern, ignore_merges, whole words in the vocabulary that no merge makes."""
    t = Tokenizer(models.BPE(ignore_merges=True))
    t.pre_tokenizer = pre_tokenizers.Sequence([split(LLAMA3_PATTERN), byte_level()])
    t.decoder = decoders.ByteLevel()
    d = train(t, 700)
    vocab = d["model"]["vocab"]
    for word in ("Ġhello", "ĠXMLHttpRequest", "1234", "123", "Ġquick", "ä¸Ńæĸĩ"):
        vocab.setdefault(word, len(vocab))
    d["added_tokens"] = [added("<|endoftext|>", len(vocab))]
    return d


def make_o200k():
    """Categories of letters and marks inside classes; MergedWithNext and Contiguous before it; no decoder."""
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.NFKC()
    t.pre_tokenizer = pre_tokenizers.Sequence([split(r"(?:\r?\n)+(?!\r?\n)", "merged_with_next"), split(O200K_PATTERN, "removed", True), split(r"\d", "contiguous"), byte_level()])
    d = train(t, 600)
    d["decoder"] = None
    return d


def make_unigram():
    """Unigram with byte fallback, no map of characters, Metaspace at the first piece, scores of integers among them."""
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.NFKC()
    t.pre_tokenizer = pre_tokenizers.Metaspace("▁", "first", False)
    t.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace("▁", "first", False)])
    special = ["<unk>", "<s>"] + [f"<0x{b:02X}>" for b in range(256)]
    t.train_from_iterator(training_text(), trainers.UnigramTrainer(vocab_size=1200, special_tokens=special, unk_token="<unk>", show_progress=False))
    d = json.loads(t.to_str())
    d["model"]["byte_fallback"] = True
    d["model"]["vocab"] = [[token, 0 if token in special else score] for token, score in d["model"]["vocab"]]
    d["added_tokens"] = [added("<unk>", 0), added("<s>", 1), added("<mask>", len(d["model"]["vocab"]), lstrip=True)]
    return d


SYNTHETIC_TOKENIZERS = {"unigram": make_unigram, "deepseek": make_deepseek, "llama_spm": make_llama_spm, "metaspace": make_metaspace, "normalized": make_normalized, "llama3": make_llama3, "o200k": make_o200k}


def train_sp(name, **options):
    with tempfile.TemporaryDirectory() as directory:
        sentences = [line.replace("\x00", " ") for text in training_text() for line in text.split("\n") if line.strip()]
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(sentences), model_writer=model, model_type="bpe", normalization_rule_name="identity", minloglevel=2, num_threads=1, character_coverage=0.98, **options)
        (SYNTHETIC / f"{name}.model").write_bytes(model.getvalue())


def mark_unused(data):
    """Every fifth piece longer than a character becomes UNUSED (5): field 1 of the model, field 3 of the piece."""

    def varint(at):
        value = shift = 0
        while True:
            byte = data[at]
            value |= (byte & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if byte < 0x80:
                return value, at

    out, at, count = b"", 0, 0
    while at < len(data):
        begin = at
        key, at = varint(at)
        length, at = varint(at)  # every field of the model is a message
        body = data[at:at + length]
        at += length
        content = body[2:2 + body[1]] if key == 10 else b""
        if key == 10 and b"\x18" not in body[2 + body[1] + 5:] and len(content.decode()) > 1:
            count += 1
            if count % 5 == 0:
                body += b"\x18\x05"
                out += b"\x0a" + bytes([len(body)]) + body
                continue
        out += data[begin:at]
    return out


def make_synthetic():
    SYNTHETIC.mkdir(parents=True, exist_ok=True)
    for name, make in SYNTHETIC_TOKENIZERS.items():
        (SYNTHETIC / f"{name}.json").write_text(json.dumps(make(), ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    # No byte fallback, white space collapsed, user-defined pieces, pieces that cross words.
    train_sp("sp_collapse", vocab_size=600, remove_extra_whitespaces=True, user_defined_symbols=["<mask>", "[INST]", "word"], split_by_whitespace=False)
    # Byte fallback, no dummy prefix, a control piece more.
    train_sp("sp_plain", vocab_size=900, byte_fallback=True, add_dummy_prefix=False, remove_extra_whitespaces=False, control_symbols=["<ctl>"], allow_whitespace_only_pieces=True)
    (SYNTHETIC / "sp_unused.model").write_bytes(mark_unused((SYNTHETIC / "sp_plain.model").read_bytes()))


# ---- components ---------------------------------------------------------------------------------------------------------

CLASSES = [r"\s", r"\S", r"\w", r"\W", r"\d", r"\D", r"\h", ".", r"\p{L}", r"\P{L}", r"\p{N}", r"\p{P}", r"\p{S}", r"\p{M}", r"\p{Lu}", r"\p{Ll}", r"\p{Lt}", r"\p{Lm}", r"\p{Lo}", r"\p{Nd}", r"\p{Z}", r"\p{^N}", r"\p{Han}", r"[^\s\p{L}\p{N}]", r"[\S\n]", r"[^\r\n\p{L}\p{N}]", "[一-龥]", r"\u00e9", r"\x41", r"\x{1F600}", r"(?i:k)", r"(?i:[a-z])"]

PRE_TOKENIZERS = [
    {"type": "ByteLevel", "add_prefix_space": a, "trim_offsets": True, "use_regex": r} for a in (True, False) for r in (True, False)
] + [
    {"type": "Split", "pattern": p, "behavior": b, "invert": i}
    for p in ({"Regex": "[0-9]"}, {"Regex": r"\s+"}, {"String": " "}, {"Regex": "[0-9]*"})
    for b in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
    for i in (False, True)
] + [
    {"type": "Split", "pattern": {"Regex": p}, "behavior": "Isolated", "invert": False}
    for p in (QWEN2_PATTERN, LLAMA3_PATTERN, O200K_PATTERN, DEEPSEEK_LETTERS, r"\s+$", r"^\s+", r"\bword\b", r"\Bo", r"x*", r"(a)\1", r"(?m:e.)", r"a{,2}b", r"{", r"(?<=o)w|r(?=l)", r"[\w']+", r"[^\w\s]+", r"\p{Han}+|[\p{Hiragana}\p{Katakana}]+", r"(?>a+)b", r"a++|b*+c", r"[^\n]+\n?", r"\R", r"(?i)word|K|'S")
] + [
    {"type": "Digits", "individual_digits": True}, {"type": "Digits", "individual_digits": False},
    {"type": "Punctuation", "behavior": "Isolated"}, {"type": "Punctuation", "behavior": "Contiguous"}, {"type": "Punctuation", "behavior": "Removed"},
    {"type": "Whitespace"}, {"type": "WhitespaceSplit"},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": True},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}, {"type": "Metaspace", "replacement": "_", "add_prefix_space": True},
    {"type": "Metaspace", "replacement": "_", "add_prefix_space": False, "prepend_scheme": "never"},
    {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Digits", "individual_digits": True}, {"type": "Punctuation", "behavior": "MergedWithPrevious"}]},
    {"type": "Sequence", "pretokenizers": []},
]

NORMALIZERS = [{"type": t} for t in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "ByteLevel")] + [
    {"type": "Strip", "strip_left": left, "strip_right": right} for left in (True, False) for right in (True, False)
] + [
    {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
    {"type": "Replace", "pattern": {"Regex": "x*"}, "content": "-"}, {"type": "Sequence", "normalizers": [{"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]}, {"type": "Sequence", "normalizers": []},
]

DECODERS = [
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}, {"type": "ByteFallback"}, {"type": "Fuse"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0}, {"type": "Strip", "content": "a", "start": 2, "stop": 3}, {"type": "Strip", "content": "▁", "start": 0, "stop": 1},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": True},
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "Replace", "pattern": {"Regex": "a+"}, "content": "b"},
    {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": "a", "start": 1, "stop": 2}]},
    {"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}]},
    {"type": "Sequence", "decoders": [{"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}, {"type": "Strip", "content": "H", "start": 1, "stop": 1}]},
    {"type": "Sequence", "decoders": []},
]

TOKEN_LISTS = [
    [], [""], ["▁Hello", "▁world", "!"], ["▁", "▁▁a", "b▁"], ["▁▁▁", "▁x"], ["<0xE4>", "<0xB8>", "<0xAD>"], ["<0xE4>", "<0xB8>"], ["a", "<0xE4>", "b", "<0x61>", "<0xFF>", "<0x62>"],
    ["<0x+1>", "<0xG0>", "<0x4>", "<0xaB>"], ["aaa", "a", "aaaaaa", "baa", "aab", ""], ["Ġthe", "ä¸", "Ń", "Ģ", "âĤ", "¬"], ["ð", "Ł", "ĺ", "Ģ", "ðŁĺ"], ["Ã", "Ã", "©", "é€"], ["ÿ", "Ġ中", "H", "Hello", "H"],
    ["<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "▁x", "<0xF0>", "<0x9F>", "y"], ["H", "H", "ello", "HH"],
]


def digest(chunks):
    h = hashlib.sha256()
    for chunk in chunks:
        h.update(chunk)
    return h.hexdigest()


SCALARS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def class_digest(pattern):
    """SHA-256 of one byte per code point: 1 if the pattern matches it."""
    s = pre_tokenizers.Split(Regex(pattern), "removed")
    members = bytearray(b"\x01" * len(SCALARS))
    for start in range(0, len(SCALARS), 4096):
        chunk = SCALARS[start:start + 4096]
        for _, (begin, end) in s.pre_tokenize_str("".join(map(chr, chunk))):
            members[start + begin:start + end] = b"\x00" * (end - begin)
    return digest([bytes(members)])


def normalizer_digest(config):
    """SHA-256 of the results for "a", the code point and two marks, for every code point, each ended by a NUL."""
    n = component("normalizer", config).normalizer
    return digest(n.normalize_str("a" + chr(c) + "\u0301\u0323").encode() + b"\x00" for c in SCALARS)


def component(kind, config):
    empty = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None, "model": {"type": "BPE", "vocab": {}, "merges": []}}
    return Tokenizer.from_str(json.dumps({**empty, kind: config}))


def golden_components():
    texts = TEXTS + ["ab1cd22ef333", "1a", "a1", "12", "xaxxbx", "aab ab b aaab{b}", "aaabc", "STRASSE straße Strasse ſs", "word sword words", "x_y z"]
    classes = [{"pattern": p, "sha256": class_digest(p)} for p in CLASSES]
    norms = []
    for config in NORMALIZERS:
        n = component("normalizer", config).normalizer
        cases = [[i, n.normalize_str(t)] for i, t in enumerate(texts)]
        norms.append({"config": config, "sha256": normalizer_digest(config) if len(config) == 1 else "", "cases": [c for c in cases if texts[c[0]] != c[1]]})
    pres = []
    for config in PRE_TOKENIZERS:
        p = component("pre_tokenizer", config).pre_tokenizer
        cases = [[i, [piece for piece, _ in p.pre_tokenize_str(t) if piece]] for i, t in enumerate(texts) if t]
        pres.append({"config": config, "cases": [c for c in cases if c[1] != [texts[c[0]]]]})
    decs = []
    for config in DECODERS:
        d = component("decoder", config).decoder
        cases = []
        for tokens in TOKEN_LISTS:
            try:
                cases.append([tokens, d.decode(tokens)])
            except BaseException as error:  # Strip panics where a token is shorter than its stop
                if type(error).__name__ != "PanicException":
                    raise
        decs.append({"config": config, "cases": cases})
    write("components", {"made_by": f"tokenizers {tokenizers.__version__}", "texts": texts, "classes": classes, "normalizers": norms, "pre_tokenizers": pres, "decoders": decs})


def qwen2_from_qwen3():
    """Qwen1.5-MoE has the vocabulary and the merges of Qwen3; built here as transformers converts Qwen2Tokenizer."""
    d = json.loads(zstd_text(DATA / "qwen3.tokenizer.json.zst"))
    t = Tokenizer(models.BPE(vocab=d["model"]["vocab"], merges=[tuple(m) for m in d["model"]["merges"]]))
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([split(QWEN2_PATTERN), byte_level()])
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens([tokenizers.AddedToken(s, normalized=False, special=True) for s in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")])
    return t


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--synthetic", action="store_true", help="make tests/data/tokenizers/synthetic anew first")
    if parser.parse_args().synthetic:
        make_synthetic()
    golden_components()
    golden_hf("fable", Tokenizer.from_file(str(FABLE)), "models/fable-moe-18m/tokenizer.json")
    for name in SYNTHETIC_TOKENIZERS:
        golden_hf(name, Tokenizer.from_file(str(SYNTHETIC / f"{name}.json")), f"tests/data/tokenizers/synthetic/{name}.json")
    for name in ("qwen3", "olmoe", "switch"):
        golden_hf(name, Tokenizer.from_str(zstd_text(DATA / f"{name}.tokenizer.json.zst").decode()), f"tests/data/tokenizers/{name}.tokenizer.json.zst")
    golden_hf("qwen2_vocab_merges", qwen2_from_qwen3(), "vocab.json and merges.txt made from tests/data/tokenizers/qwen3.tokenizer.json.zst")
    for version in ("v1", "v2", "v3"):
        golden_sp(f"mistral_{version}", mistral_model(version), f"tests/data/tokenizers/mistral.tokenizer.model.{version}.zst")
    for name in ("sp_collapse", "sp_plain", "sp_unused"):
        golden_sp(name, (SYNTHETIC / f"{name}.model").read_bytes(), f"tests/data/tokenizers/synthetic/{name}.model")


if __name__ == "__main__":
    main()
