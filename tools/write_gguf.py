#!/usr/bin/env python3
"""Writes the weights of a Hugging Face directory as a GGUF file, word for word, for engines that read that format.

    tools/write_gguf.py DIRECTORY NAME.gguf [--consume] [--take-for-granted]

Matrices stay BF16, and norms, biases and router matrices become F32, as llama.cpp has them. One tensor is in memory at a time (of
experts: one kind of matrix of one layer). A tokenizer.json of byte-level BPE whose pattern PATTERNS lists is written, too, with the
chat template; with any other the file has no tokenizer, and prompts are token ids. --consume removes each file of DIRECTORY once all of
it is written, so that two copies never lie on the disk. --take-for-granted writes a model that differs from what its GGUF architecture
takes for granted (the bundled one renormalises the weights of its experts, qwen2moe does not): engines then compute another model, all
the same one. Wants the PyPI packages gguf and numpy; models: qwen2_moe, qwen3_moe, deepseek_v2, mixtral.
"""
import argparse
import glob
import json
import os
import re
import struct
import sys

try:
    import gguf
    import numpy
except ImportError as error:
    sys.exit(f"write_gguf.py: {error}; expected the packages gguf and numpy: pip install gguf numpy, in an environment of its own")

ARCHITECTURES = {"qwen2_moe": gguf.MODEL_ARCH.QWEN2MOE, "qwen3_moe": gguf.MODEL_ARCH.QWEN3MOE,
                 "deepseek_v2": gguf.MODEL_ARCH.DEEPSEEK2, "mixtral": gguf.MODEL_ARCH.LLAMA}
# How a tokenizer.json cuts text, and the name of that in GGUF files.
PATTERNS = {r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+": "qwen2"}
EXPERT = re.compile(r"(.*\.(?:experts))\.(\d+)\.(\w+)\.weight")  # model.layers.3.mlp.experts.17.up_proj.weight


def fail(where, what):
    sys.exit(f"write_gguf.py: {where}: {what}")


class Source:
    """The tensors of a directory, as arrays of 16-bit words that are read when they are used."""

    def __init__(self, directory):
        self.config = json.load(open(os.path.join(directory, "config.json")))
        self.places = {}  # name: (path, shape, first byte)
        for path in sorted(glob.glob(os.path.join(directory, "*.safetensors"))):
            with open(path, "rb") as file:
                (length,) = struct.unpack("<Q", file.read(8))
                header = json.loads(file.read(length))
            for name, info in header.items():
                if name == "__metadata__":
                    continue
                if info["dtype"] != "BF16":
                    fail(f"{path}: {name}", f"expected BF16, found {info['dtype']}")
                self.places[name] = (path, tuple(info["shape"]), 8 + length + info["data_offsets"][0])
        if not self.places:
            fail(directory, "no *.safetensors in it")

    def shape(self, name):
        return self.places[name][1]

    def path(self, name):
        return self.places[name][0]

    def words(self, name):
        path, shape, first = self.places[name]
        return numpy.fromfile(path, numpy.uint16, int(numpy.prod(shape)), offset=first).reshape(shape)


def as_f32(words):
    return (words.astype(numpy.uint32) << 16).view(numpy.float32)


def interleave_halves(words, heads):
    """Rotary pairs (i, i + half) of each head become neighbours (2i, 2i + 1), as architecture `llama` has them."""
    halves = words.reshape(heads, 2, words.shape[0] // heads // 2, -1)
    return halves.swapaxes(1, 2).reshape(words.shape)


class Output:
    """A tensor of the GGUF file: its name, and how it is made of tensors of the source."""

    def __init__(self, name, shape, f32, sources, make):
        self.name, self.shape, self.f32, self.sources, self.make = name, shape, f32, sources, make

    def nbytes(self):
        return int(numpy.prod(self.shape)) * (4 if self.f32 else 2)


def outputs_of(source, arch):
    """All tensors, in the order in which the source has them."""
    config = source.config
    names = gguf.get_tensor_name_map(arch, config["num_hidden_layers"])
    outputs, merged = [], {}

    def add(hf_name, shape, sources, make):
        stem, suffix = hf_name.rsplit(".", 1)
        name = names.get_name(stem)
        if name is None:
            fail(hf_name, f"architecture {gguf.MODEL_ARCH_NAMES[arch]} of the package gguf has no such tensor")
        f32 = len(shape) == 1 or ".ffn_gate_inp" in name
        if f32 and name.endswith("ffn_gate_inp_shexp"):
            shape = (shape[-1],)
        outputs.append(Output(f"{name}.{suffix}", shape, f32, sources, make))

    for name in source.places:
        shape = source.shape(name)
        expert = EXPERT.fullmatch(name)
        if expert:
            prefix = re.sub(r"^model\.(layers\.\d+)\.block_sparse_moe", r"\1.feed_forward", expert[1])
            merged.setdefault((prefix, expert[3]), []).append((int(expert[2]), name))
        elif name.endswith("kv_b_proj.weight"):
            heads, nope, value = config["num_attention_heads"], config["qk_nope_head_dim"], config["v_head_dim"]
            rank = shape[1]

            def by_head(n=name, dims=(heads, nope + value, rank)):
                return source.words(n).reshape(dims)

            add(name.replace("kv_b_proj", "k_b_proj"), (heads, rank, nope), [name],
                lambda f=by_head: f()[:, :nope].transpose(0, 2, 1))
            add(name.replace("kv_b_proj", "v_b_proj"), (heads, value, rank), [name], lambda f=by_head: f()[:, nope:])
        elif arch == gguf.MODEL_ARCH.LLAMA and re.search(r"\.[qk]_proj\.weight$", name):
            heads = config["num_attention_heads" if ".q_proj" in name else "num_key_value_heads"]
            add(name, shape, [name], lambda n=name, h=heads: interleave_halves(source.words(n), h))
        else:
            add(name, shape, [name], lambda n=name: source.words(n))
    for (prefix, kind), experts in merged.items():
        experts = [name for _, name in sorted(experts)]
        shape = (len(experts), *source.shape(experts[0]))

        def stack(parts=experts, dims=shape):
            all_words = numpy.empty(dims, numpy.uint16)
            for i, part in enumerate(parts):
                all_words[i] = source.words(part)
            return all_words

        add(f"{prefix}.{kind}.weight", shape, experts, stack)
    order = {path: i for i, path in enumerate(dict.fromkeys(place[0] for place in source.places.values()))}
    return sorted(outputs, key=lambda output: max(order[source.path(name)] for name in output.sources))


def check(config, where, take_for_granted):
    """What the file has no key for, and the architecture takes for granted."""
    kind = config["model_type"]
    granted = {"qwen2_moe": {"norm_topk_prob": False, "decoder_sparse_step": 1, "mlp_only_layers": [], "use_sliding_window": False},
               "qwen3_moe": {"norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [], "use_sliding_window": False},
               "deepseek_v2": {"topk_method": "greedy", "moe_layer_freq": 1},
               "mixtral": {"sliding_window": None}}[kind]
    for key, value in granted.items():
        if config.get(key, value) != value and take_for_granted:
            print(f"write_gguf.py: {where}: {key} is {config[key]}; readers of the file take {value} for granted", file=sys.stderr)
        elif config.get(key, value) != value:
            fail(f"{where}: {key}", f"expected {value}, found {config[key]}: the GGUF architecture has no key for it")
    scaling = config.get("rope_scaling")
    if scaling and scaling.get("rope_type", scaling.get("type")) != "yarn":
        fail(f"{where}: rope_scaling", f"expected none or yarn, found {scaling}")


def add_keys(writer, config):
    kind = config["model_type"]
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    writer.add_type(gguf.GGUFType.MODEL)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_expert_count(config.get("num_experts") or config.get("n_routed_experts") or config.get("num_local_experts"))
    writer.add_expert_used_count(config["num_experts_per_tok"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    if kind == "deepseek_v2":
        # Attention in absorbed form: one key and value head of the latent's width; "mla" lengths are those of the heads.
        rope = config["qk_rope_head_dim"]
        writer.add_head_count_kv(1)
        writer.add_key_length(config["kv_lora_rank"] + rope)
        writer.add_value_length(config["kv_lora_rank"])
        writer.add_key_length_mla(config["qk_nope_head_dim"] + rope)
        writer.add_value_length_mla(config["v_head_dim"])
        writer.add_q_lora_rank(config.get("q_lora_rank") or 0)
        writer.add_kv_lora_rank(config["kv_lora_rank"])
        writer.add_rope_dimension_count(rope)
        writer.add_leading_dense_block_count(config["first_k_dense_replace"])
        writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
        writer.add_expert_shared_count(config.get("n_shared_experts") or 0)
        writer.add_expert_weights_scale(config.get("routed_scaling_factor", 1.0))
        writer.add_expert_weights_norm(bool(config.get("norm_topk_prob")))
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SOFTMAX)
    else:
        writer.add_head_count_kv(config["num_key_value_heads"])
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
        writer.add_rope_dimension_count(head_dim)
    if kind in ("qwen2_moe", "qwen3_moe"):
        writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
    if kind == "qwen2_moe":
        writer.add_expert_shared_feed_forward_length(config["shared_expert_intermediate_size"])
    if scaling := config.get("rope_scaling"):
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(scaling["factor"])
        writer.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])
        if "beta_fast" in scaling:
            writer.add_rope_scaling_yarn_beta_fast(scaling["beta_fast"])
        if "beta_slow" in scaling:
            writer.add_rope_scaling_yarn_beta_slow(scaling["beta_slow"])
        if scaling.get("mscale_all_dim"):
            writer.add_rope_scaling_yarn_log_mul(0.1 * scaling["mscale_all_dim"])  # llama.cpp divides by 0.1


def json_of(directory, name):
    path = os.path.join(directory, name)
    return json.load(open(path, encoding="utf-8")) if os.path.exists(path) else {}


def pattern_of(tokenizer):
    """The name of the way in which the tokenizer cuts text; None if it has no name here."""
    steps = (tokenizer.get("pre_tokenizer") or {}).get("pretokenizers", [])
    splits = [step["pattern"].get("Regex") for step in steps if step["type"] == "Split"]
    only_bytes = [step["type"] for step in steps if step["type"] != "Split"] == ["ByteLevel"]
    return PATTERNS.get(splits[0]) if len(splits) == 1 and only_bytes and tokenizer["model"].get("type") == "BPE" else None


def add_tokenizer(writer, directory, config):
    tokenizer, settings = json_of(directory, "tokenizer.json"), json_of(directory, "tokenizer_config.json")
    pattern = pattern_of(tokenizer)
    if pattern is None:
        writer.add_tokenizer_model("no_vocab")
        return
    added = {token["id"]: token for token in tokenizer["added_tokens"]}
    by_id = {id: token for token, id in tokenizer["model"]["vocab"].items()} | {id: token["content"] for id, token in added.items()}
    tokens, types = [], []
    for id in range(max(config["vocab_size"], max(by_id) + 1)):
        kind = gguf.TokenType.NORMAL if id in by_id else gguf.TokenType.UNUSED
        if id in added:
            kind = gguf.TokenType.CONTROL if added[id]["special"] else gguf.TokenType.USER_DEFINED
        tokens.append(by_id.get(id, f"[PAD{id}]"))
        types.append(kind)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pattern)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges([rule if isinstance(rule, str) else " ".join(rule) for rule in tokenizer["model"]["merges"]])
    generation = json_of(directory, "generation_config.json")
    ends = generation.get("eos_token_id", config.get("eos_token_id"))
    ends = ends if isinstance(ends, list) else [] if ends is None else [ends]
    for add, id in zip((writer.add_eos_token_id, writer.add_eot_token_id, writer.add_eom_token_id), ends):
        add(id)
    if config.get("bos_token_id") is not None:
        writer.add_bos_token_id(config["bos_token_id"])
    writer.add_add_bos_token(bool(settings.get("add_bos_token", False)))
    template = settings.get("chat_template")
    jinja = os.path.join(directory, "chat_template.jinja")
    if template is None and os.path.exists(jinja):
        template = open(jinja, encoding="utf-8").read()
    if template is not None:
        writer.add_chat_template(template)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("output")
    parser.add_argument("--consume", action="store_true", help="remove each file of DIRECTORY once all of it is written")
    parser.add_argument("--take-for-granted", action="store_true", help="write what the architecture computes in another way, too")
    options = parser.parse_args()
    if os.path.exists(options.output):
        fail(options.output, "already exists; remove it or choose another name")
    source = Source(options.directory)
    config_path = os.path.join(options.directory, "config.json")
    kind = source.config.get("model_type")
    if kind not in ARCHITECTURES:
        fail(f"{config_path}: model_type", f"expected one of {', '.join(ARCHITECTURES)}, found {kind}")
    check(source.config, config_path, options.take_for_granted)
    arch = ARCHITECTURES[kind]
    outputs = outputs_of(source, arch)

    partial = options.output + ".partial"
    writer = gguf.GGUFWriter(partial, gguf.MODEL_ARCH_NAMES[arch])
    add_keys(writer, source.config)
    add_tokenizer(writer, options.directory, source.config)
    for output in outputs:
        raw = None if output.f32 else gguf.GGMLQuantizationType.BF16
        writer.add_tensor_info(output.name, output.shape, numpy.dtype(numpy.float32 if output.f32 else numpy.uint16), output.nbytes(), raw)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    users = {}  # of each file: outputs still to be made from it
    for output in outputs:
        for path in {source.path(name) for name in output.sources}:
            users[path] = users.get(path, 0) + 1
    done, total = 0, sum(output.nbytes() for output in outputs)
    for output in outputs:
        words = output.make()
        values = as_f32(words).reshape(output.shape) if output.f32 else numpy.ascontiguousarray(words)
        writer.write_tensor_data(values)
        done += output.nbytes()
        if sys.stderr.isatty():
            print(f"\r{done / 1e9:.1f} of {total / 1e9:.1f} GB", end="", file=sys.stderr)
        for path in {source.path(name) for name in output.sources}:
            users[path] -= 1
            if users[path] == 0 and options.consume:
                writer.flush()
                os.remove(path)
    writer.close()
    os.rename(partial, options.output)
    print(f"{options.output}: {len(outputs)} tensors, {total} bytes")


if __name__ == "__main__":
    main()
