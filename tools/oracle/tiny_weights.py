# SPDX-License-Identifier: Apache-2.0
"""What is committed of a tiny model: config, index of shards, and weights.json, which says how each tensor is drawn.

`tensor_shapes` is the single list of names and shapes: the tensors a published checkpoint of its kind holds, and
nothing else. Values and files follow from weights.json (seeded_weights.py).
"""

import json
import math
import re
from pathlib import Path

from seeded_weights import INDEX_NAME, SPEC_NAME
from tiny_configs import TinyModel

DTYPE_NAMES = {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}
DTYPE_BYTES = {"BF16": 2, "F16": 2, "F32": 4, "U8": 1}

# Standard deviation times sqrt(fan-in), by the end of the tensor's name; the first match counts.
# Logits then lie within about +-20, attention is neither flat nor one-hot, and a router's choice is clear
# while its k-th expert still carries weight.
GAINS = (
    ("embed_tokens.weight", 4.0),
    ("lm_head.weight", 4.0),
    ("mlp.gate.weight", 2.5),
    ("block_sparse_moe.gate.weight", 2.5),
    ("mlp.router.weight", 2.5),
    ("q_proj.weight", 1.4),
    ("k_proj.weight", 1.4),
    ("q_b_proj.weight", 1.4),
    ("q_a_proj.weight", 0.05),  # so small that the epsilon of the norm behind it shows
    ("o_proj.weight", 1.5),
    ("down_proj.weight", 2.5),
    ("experts.gate_up_proj_scales", 1.5),
    ("experts.down_proj_scales", 2.0),
    ("w2.weight", 2.5),
    ("experts.down_proj", 2.5),
    ("gate_proj.weight", 1.5),
    ("experts.gate_up_proj", 1.3),  # stacked experts: gate and up are one tensor, so one number
    ("w1.weight", 1.5),
    ("shared.weight", 1.2),  # so small that layers, not the token itself, decide what comes next
    ("router.classifier.weight", 2.5),
    (".wi.weight", 1.5),
    (".wo.weight", 4.0),
    ("Attention.q.weight", 1.1),  # T5 does not scale its scores
    ("Attention.k.weight", 1.1),
    ("Attention.o.weight", 2.5),
    ("relative_attention_bias.weight", 2.5),
    ("", 1.0),
)


def is_sparse(config: dict, layer: int) -> bool:
    """Whether layer `layer` has experts, by each family's own rule."""
    family = config["model_type"]
    if family in ("qwen2_moe", "qwen3_moe"):
        return layer not in config.get("mlp_only_layers", []) and (layer + 1) % config["decoder_sparse_step"] == 0
    if family in ("deepseek", "deepseek_v2"):
        return layer >= config["first_k_dense_replace"] and layer % config["moe_layer_freq"] == 0
    return True


def head_dim(config: dict) -> int:
    return config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]


def swiglu_shapes(prefix: str, hidden: int, inter: int, names=("gate_proj", "up_proj", "down_proj")) -> dict:
    gate, up, down = (f"{prefix}.{name}.weight" for name in names)
    return {gate: (inter, hidden), up: (inter, hidden), down: (hidden, inter)}


def attention_shapes(config: dict, prefix: str) -> dict:
    """Multi-head or grouped-query attention, with what the family adds: biases or norms."""
    hidden, family = config["hidden_size"], config["model_type"]
    q_width = config["num_attention_heads"] * head_dim(config)
    kv_width = config.get("num_key_value_heads", config["num_attention_heads"]) * head_dim(config)
    widths = {"q": q_width, "k": kv_width, "v": kv_width}
    shapes = {f"{prefix}.{x}_proj.weight": (width, hidden) for x, width in widths.items()}
    shapes[f"{prefix}.o_proj.weight"] = (hidden, q_width)
    if family == "qwen2_moe" or config.get("attention_bias"):
        shapes |= {f"{prefix}.{x}_proj.bias": (width,) for x, width in widths.items()}
    if family == "gpt_oss":  # a score for each head beside those of the keys
        shapes[f"{prefix}.sinks"] = (config["num_attention_heads"],)
        if config["attention_bias"]:
            shapes[f"{prefix}.o_proj.bias"] = (hidden,)
    if family == "qwen3_moe":  # one norm for every head
        shapes |= {f"{prefix}.{x}_norm.weight": (head_dim(config),) for x in "qk"}
    if family == "olmoe":  # one norm across all heads
        shapes |= {f"{prefix}.{x}_norm.weight": (widths[x],) for x in "qk"}
    return shapes


def latent_attention_shapes(config: dict, prefix: str) -> dict:
    """DeepSeek-V2's MLA."""
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    nope, rope, value = config["qk_nope_head_dim"], config["qk_rope_head_dim"], config["v_head_dim"]
    q_rank, kv_rank = config["q_lora_rank"], config["kv_lora_rank"]
    shapes = {
        f"{prefix}.kv_a_proj_with_mqa.weight": (kv_rank + rope, hidden),
        f"{prefix}.kv_a_layernorm.weight": (kv_rank,),
        f"{prefix}.kv_b_proj.weight": (heads * (nope + value), kv_rank),
        f"{prefix}.o_proj.weight": (hidden, heads * value),
    }
    if q_rank is None:
        return shapes | {f"{prefix}.q_proj.weight": (heads * (nope + rope), hidden)}
    return shapes | {
        f"{prefix}.q_a_proj.weight": (q_rank, hidden),
        f"{prefix}.q_a_layernorm.weight": (q_rank,),
        f"{prefix}.q_b_proj.weight": (heads * (nope + rope), q_rank),
    }


def mxfp4_mlp_shapes(config: dict, layer_prefix: str) -> dict:
    """gpt-oss: all experts of a layer in one tensor of codes and one of scales for each of two matrices."""
    hidden, inter, experts = config["hidden_size"], config["intermediate_size"], config["num_local_experts"]
    prefix = f"{layer_prefix}.mlp"
    shapes = {f"{prefix}.router.weight": (experts, hidden), f"{prefix}.router.bias": (experts,)}
    for name, rows, columns in (("gate_up_proj", 2 * inter, hidden), ("down_proj", hidden, inter)):
        stem = f"{prefix}.experts.{name}"
        shapes[f"{stem}_blocks"] = (experts, rows, columns // 32, 16)
        shapes[f"{stem}_scales"] = (experts, rows, columns // 32)
        shapes[f"{stem}_bias"] = (experts, rows)
    return shapes


def sparse_mlp_shapes(config: dict, layer_prefix: str) -> dict:
    hidden, family = config["hidden_size"], config["model_type"]
    if family == "gpt_oss":
        return mxfp4_mlp_shapes(config, layer_prefix)
    inter = config.get("moe_intermediate_size") or config["intermediate_size"]
    experts = config.get("num_experts") or config.get("n_routed_experts") or config["num_local_experts"]
    block = "block_sparse_moe" if family == "mixtral" else "mlp"
    names = ("w1", "w3", "w2") if family == "mixtral" else ("gate_proj", "up_proj", "down_proj")
    prefix = f"{layer_prefix}.{block}"

    shapes = {f"{prefix}.{'router' if family == 'xverse' else 'gate'}.weight": (experts, hidden)}
    for expert in range(experts):
        shapes |= swiglu_shapes(f"{prefix}.experts.{expert}", hidden, inter, names)
    if family == "qwen2_moe":
        shapes |= swiglu_shapes(f"{prefix}.shared_expert", hidden, config["shared_expert_intermediate_size"])
        shapes[f"{prefix}.shared_expert_gate.weight"] = (1, hidden)
    shared = config.get("n_shared_experts") or config.get("num_shared_experts")
    if shared:
        shapes |= swiglu_shapes(f"{prefix}.shared_experts", hidden, shared * inter)
    return shapes


def switch_attention_shapes(config: dict, prefix: str, name: str, bias: bool) -> dict:
    hidden, inner = config["d_model"], config["num_heads"] * config["d_kv"]
    shapes = {f"{prefix}.{name}.{x}.weight": (inner, hidden) for x in "qkv"}
    shapes[f"{prefix}.{name}.o.weight"] = (hidden, inner)
    if bias:
        buckets = config["relative_attention_num_buckets"]
        shapes[f"{prefix}.{name}.relative_attention_bias.weight"] = (buckets, config["num_heads"])
    return shapes | {f"{prefix}.layer_norm.weight": (hidden,)}


def switch_stack_shapes(config: dict, stack: str, blocks: int, sparse_blocks: int) -> dict:
    hidden, inter, step = config["d_model"], config["d_ff"], blocks // sparse_blocks
    shapes = {}
    for block in range(blocks):
        prefix = f"{stack}.block.{block}.layer"
        shapes |= switch_attention_shapes(config, f"{prefix}.0", "SelfAttention", block == 0)
        if stack == "decoder":
            shapes |= switch_attention_shapes(config, f"{prefix}.1", "EncDecAttention", False)
        last = f"{prefix}.{2 if stack == 'decoder' else 1}"
        shapes[f"{last}.layer_norm.weight"] = (hidden,)
        mlps = [f"{last}.mlp"]
        if step == 1 or block % step == 1:
            shapes[f"{last}.mlp.router.classifier.weight"] = (config["num_experts"], hidden)
            mlps = [f"{last}.mlp.experts.expert_{e}" for e in range(config["num_experts"])]
        for mlp in mlps:
            shapes |= {f"{mlp}.wi.weight": (inter, hidden), f"{mlp}.wo.weight": (hidden, inter)}
    return shapes | {f"{stack}.final_layer_norm.weight": (hidden,)}


def switch_shapes(config: dict) -> dict:
    shapes = {"shared.weight": (config["vocab_size"], config["d_model"])}
    shapes |= switch_stack_shapes(config, "encoder", config["num_layers"], config["num_sparse_encoder_layers"])
    shapes |= switch_stack_shapes(config, "decoder", config["num_decoder_layers"], config["num_sparse_decoder_layers"])
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (config["vocab_size"], config["d_model"])
    return shapes


def tensor_shapes(config: dict) -> dict:
    """Name -> shape of every tensor of the checkpoint, experts one tensor per projection."""
    if config["model_type"] == "switch_transformers":
        return switch_shapes(config)
    hidden, vocab = config["hidden_size"], config["vocab_size"]
    attention = latent_attention_shapes if config["model_type"] == "deepseek_v2" else attention_shapes
    shapes = {"model.embed_tokens.weight": (vocab, hidden)}
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}"
        shapes |= attention(config, f"{prefix}.self_attn")
        if is_sparse(config, layer):
            shapes |= sparse_mlp_shapes(config, prefix)
        else:
            shapes |= swiglu_shapes(f"{prefix}.mlp", hidden, config["intermediate_size"])
        shapes[f"{prefix}.input_layernorm.weight"] = (hidden,)
        shapes[f"{prefix}.post_attention_layernorm.weight"] = (hidden,)
    shapes["model.norm.weight"] = (hidden,)
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (vocab, hidden)
    return shapes


def distribution(name: str, shape: tuple) -> dict:
    """Mean and standard deviation of a tensor's values. Deviations have four digits: they are read by people."""
    if name == "decoder.final_layer_norm.weight":
        return {"mean": 12.0, "scale": 1.0}  # the small embedding is the head, and a tied head also divides by sqrt(d_model)
    if name.endswith("norm.weight"):
        return {"mean": 1.0, "scale": 0.1}  # not all ones: a norm that is skipped or swapped must show
    if name.endswith((".bias", "_bias")):
        return {"scale": 0.3}
    if name.endswith(".sinks"):
        return {"mean": 0.5, "scale": 1.5}
    if name.endswith("_blocks"):  # every byte is as likely as another
        return {"scale": 5000.0, "dtype": "U8"}
    if name.endswith("_scales"):  # exponents of the deviation that the gain asks for; codes alone have 2.93
        gain = next(gain for suffix, gain in GAINS if name.endswith(suffix))
        mean = 127 + math.log2(gain / (32 * shape[-1]) ** 0.5 / 2.93)
        return {"mean": float(f"{mean:.4g}"), "scale": 0.7, "dtype": "U8"}
    gain = next(gain for suffix, gain in GAINS if name.endswith(suffix))
    return {"scale": float(f"{gain / shape[-1] ** 0.5:.4g}")}


def stack_experts(shapes: dict, config: dict) -> dict:
    """The layout of newer exports: one 3-D tensor for all experts' gate and up, one for their down."""
    stacked = {}
    for name, shape in shapes.items():
        prefix, _, rest = name.partition(".experts.")
        if not rest:
            stacked[name] = shape
            continue
        inter, hidden = shapes[f"{prefix}.experts.0.gate_proj.weight"]
        stacked[f"{prefix}.experts.gate_up_proj"] = (config["num_experts"], 2 * inter, hidden)
        stacked[f"{prefix}.experts.down_proj"] = (config["num_experts"], hidden, inter)
    return stacked


def rotary_entries(config: dict) -> dict:
    """The inverse frequencies that old exports carried. Rounded to the checkpoint's dtype like everything else
    in it, so that a reader that uses them instead of computing its own gets visibly different logits."""
    dim = head_dim(config)
    values = [float(f"{config['rope_theta'] ** (-i / dim):.6g}") for i in range(0, dim, 2)]
    return {f"model.layers.{layer}.self_attn.rotary_emb.inv_freq": {"shape": [len(values)], "values": values}
            for layer in range(config["num_hidden_layers"])}


def tensor_entries(model: TinyModel) -> dict:
    """Name -> entry of weights.json, for each tensor of the checkpoint. A copy is drawn under the name of what it
    is a copy of, its "key"."""
    shapes = tensor_shapes(model.config)
    if model.stacked_experts:
        shapes = stack_experts(shapes, model.config)
    entries = {name: {"shape": list(shape)} | distribution(name, shape) for name, shape in shapes.items()}
    copies = {}
    if model.explicit_lm_head:
        copies = {"lm_head.weight": "model.embed_tokens.weight"}
    if model.embedding_copies:
        copies = {f"{stack}.embed_tokens.weight": "shared.weight" for stack in ("encoder", "decoder")}
    entries |= {name: entries[key] | {"key": key} for name, key in copies.items()}
    if model.stale_inv_freq:
        entries |= rotary_entries(model.config)
    for name, entry in entries.items():
        if name.endswith("mlp.router.weight") and model.config["model_type"] == "xverse":
            # kept in fp32 whatever the file's dtype
            entry["dtype"] = "F32"
    return entries


def number_list(values: list[int]) -> str:
    """[0, 1, 2, 5] -> "{0-2,5}"; one number stays bare."""
    runs = []
    for value in values:
        if runs and value == runs[-1][1] + 1:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    text = ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
    return text if len(values) == 1 else f"{{{text}}}"


def grouped(entries: dict) -> list[dict]:
    """The entries with one name pattern for all tensors that differ in layer or expert alone."""
    number = re.compile(r"(?<=\.)\d+(?=\.)|(?<=expert_)\d+")
    groups = {}
    for name, entry in entries.items():
        template = (number.sub("{}", name), json.dumps(entry))
        groups.setdefault(template, []).append([int(found) for found in number.findall(name)])
    result = []
    for (template, entry), found in groups.items():
        axes = [sorted(set(axis)) for axis in zip(*found, strict=True)]
        if math.prod(len(axis) for axis in axes) != len(found):
            raise ValueError(f"{template}: the layers of this tensor have different experts")
        result.append({"name": template.format(*map(number_list, axes))} | json.loads(entry))
    return result


def shard_index(entries: dict, dtype: str, count: int) -> dict:
    """Cuts the list of tensors at equal shares of bytes, wherever that falls: experts of a layer may part."""
    sizes = {name: math.prod(entry["shape"]) * DTYPE_BYTES[entry.get("dtype", dtype)]
             for name, entry in entries.items()}
    total, seen, weight_map = sum(sizes.values()), 0, {}
    for name, size in sizes.items():
        shard = min(count, seen * count // total + 1)
        weight_map[name] = f"model-{shard:05d}-of-{count:05d}.safetensors"
        seen += size
    return {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}


def write_json(path: Path, value) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")


def write_spec(path: Path, spec: dict) -> None:
    """One tensor a line."""
    lines = ",\n".join("    " + json.dumps(entry) for entry in spec["tensors"])
    head = "".join(f"  {json.dumps(key)}: {json.dumps(spec[key])},\n" for key in ("seed", "dtype"))
    path.write_text(f'{{\n{head}  "tensors": [\n{lines}\n  ]\n}}\n')


def write_sources(model: TinyModel, seed: int, directory: Path) -> None:
    """What is committed: config, optional generation config, weights.json, and the index of shards if there are
    several."""
    directory.mkdir(parents=True, exist_ok=True)
    for stale in directory.iterdir():
        stale.unlink()
    write_json(directory / "config.json", model.config)
    if model.generation_config:
        write_json(directory / "generation_config.json", model.generation_config)
    entries, dtype = tensor_entries(model), DTYPE_NAMES[model.dtype]
    write_spec(directory / SPEC_NAME, {"seed": seed, "dtype": dtype, "tensors": grouped(entries)})
    if model.shards > 1:
        write_json(directory / INDEX_NAME, shard_index(entries, dtype, model.shards))
