#!/usr/bin/env python3
"""Writes small vocabularies as GGUF files, and what their ids should be.

    tools/oracle/make_gguf_golden.py

Trains three tokenizers on the bundled model's eval.txt, writes each as a GGUF file without tensors, as llama.cpp's converter writes
their keys, to tests/fuzz/corpus/gguf_tokenizer, and the ids that their own libraries give to tests/golden/tokenizers/gguf.json. Wants
the PyPI packages gguf, sentencepiece and tokenizers.
"""
import io
import json
import os

import gguf
import sentencepiece
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
CORPUS = os.path.join(ROOT, "tests/fuzz/corpus/gguf_tokenizer")
TEXT = open(os.path.join(ROOT, "models/fable-moe-18m/eval.txt"), encoding="utf-8").read()[:40000]
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
WORD = "\u2581"
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEXTS = ["", " ", "  ", "\n", "\n\n\n", "a\n\n b", "Once upon a time", " Once upon a time, there was a fox.", "the\tfox\r\nran",
         "She'll say: 'I'M here', he'd said 12345 times!", "naïve café résumé", "e\u0301 and \u00e9", "日本語 and 中文", "😀 done 🦙🦙", "...---...  ??",
         "x=3.14; y<=2e-8", "word" * 20, "\u2581 and \u2581\u2581", "A" * 40, "end \n"]


def train(tokenizer, size, special, alphabet=()):
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=list(special), initial_alphabet=list(alphabet), show_progress=False)
    tokenizer.train_from_iterator(TEXT.splitlines(keepends=True), trainer)
    return json.loads(tokenizer.to_str())["model"]


def write(name, model, tokens, types, keys, merges=None, scores=None):
    writer = gguf.GGUFWriter(os.path.join(CORPUS, name + ".gguf"), "llama")
    writer.add_tokenizer_model(model)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    if merges is not None:
        writer.add_token_merges([left + " " + right for left, right in merges])
    if scores is not None:
        writer.add_token_scores(scores)
    for key, value in keys.items():
        (writer.add_bool if isinstance(value, bool) else writer.add_string if isinstance(value, str) else writer.add_uint32)(key, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()


def byte_level():
    """A pattern that cuts, and bytes as printable characters: qwen2."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN2), "isolated"),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    found = train(tokenizer, 420, [], pre_tokenizers.ByteLevel.alphabet())
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    size = tokenizer.get_vocab_size()
    tokens = [tokenizer.id_to_token(i) for i in range(size)] + [f"[PAD{size}]"]
    types = [NORMAL] * (size - 3) + [CONTROL] * 3 + [UNUSED]
    write("bytes", "gpt2", tokens, types, {"tokenizer.ggml.pre": "qwen2", "tokenizer.ggml.eos_token_id": size - 1,
                                           "tokenizer.ggml.bos_token_id": size - 3, "tokenizer.ggml.add_bos_token": False,
                                           "tokenizer.chat_template": "{{ messages }}"}, merges=found["merges"])
    return {text: tokenizer.encode(text).ids for text in TEXTS + ["<|im_start|>the fox<|im_end|>\n"]}


def raw_text():
    """Characters and U+2581, nothing cut: gemma4."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", WORD)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("\\n+"), "isolated")
    special = ["<pad>", "<eos>", "<bos>", "<unk>"]
    found = train(tokenizer, 700, special + BYTES + ["<|tool_call>"])
    runs = [("\n" * n, "\n") for n in range(1, 4)]
    vocab = found["vocab"]
    for left, right in runs:
        vocab.setdefault(left + right, len(vocab))
    found["merges"] = [tuple(pair) for pair in found["merges"]] + [pair for pair in runs if list(pair) not in found["merges"]]
    tokenizer.model = models.BPE(vocab, found["merges"], unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    tokenizer.add_special_tokens(special)
    tokenizer.add_tokens(["<|tool_call>"])
    tokens = [content for content, _ in sorted(vocab.items(), key=lambda item: item[1])]
    types = [CONTROL if t in special else USER_DEFINED if t == "<|tool_call>" else BYTE if t in BYTES else NORMAL for t in tokens]
    write("raw", "gemma4", tokens, types, {"tokenizer.ggml.bos_token_id": 2, "tokenizer.ggml.eos_token_id": 1,
                                           "tokenizer.ggml.unknown_token_id": 3, "tokenizer.ggml.add_space_prefix": False},
          merges=found["merges"])
    return {text: tokenizer.encode(text).ids for text in TEXTS + ["a<|tool_call> b<eos>"]}


def pieces():
    """SentencePiece's merges by score: llama."""
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(TEXT.splitlines()), model_writer=out, vocab_size=600, model_type="bpe",
                                             byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
                                             character_coverage=0.995, minloglevel=2)
    model = sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())
    size = model.get_piece_size()
    types = [UNKNOWN if model.is_unknown(i) else CONTROL if model.is_control(i) else BYTE if model.is_byte(i) else NORMAL for i in range(size)]
    write("pieces", "llama", [model.id_to_piece(i) for i in range(size)], types,
          {"tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 0},
          scores=[model.get_score(i) for i in range(size)])
    return {text: model.encode(text) for text in TEXTS}


def main():
    os.makedirs(CORPUS, exist_ok=True)
    golden = {}
    for make in (byte_level, raw_text, pieces):
        name = {"byte_level": "bytes", "raw_text": "raw", "pieces": "pieces"}[make.__name__]
        golden[name] = [[text, ids] for text, ids in make().items()]
    with open(os.path.join(ROOT, "tests/golden/tokenizers/gguf.json"), "w", encoding="utf-8") as file:
        rows = (json.dumps(name) + ": [" + ",\n  ".join(json.dumps(pair) for pair in pairs) + "]" for name, pairs in golden.items())
        file.write("{" + ",\n ".join(rows) + "}\n")


if __name__ == "__main__":
    main()
