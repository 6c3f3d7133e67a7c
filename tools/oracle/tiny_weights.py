# SPDX-License-Identifier: Apache-2.0
"""Random weights for a tiny model: the tensors a published checkpoint of its kind holds, and nothing else.

`tensor_shapes` is the single list of names and shapes; values, dtype rounding and files follow from it.
"""

import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from tiny_configs import TinyModel

STORAGE_DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}

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
    ("w2.weight", 2.5),
    ("gate_proj.weight", 1.5),
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
    if family == "qwen2_moe":
        shapes |= {f"{prefix}.{x}_proj.bias": (width,) for x, width in widths.items()}
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


def sparse_mlp_shapes(config: dict, layer_prefix: str) -> dict:
    hidden, family = config["hidden_size"], config["model_type"]
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


def random_tensor(name: str, shape: tuple, rng: np.random.Generator) -> torch.Tensor:
    """float32; the caller rounds it. Drawn by numpy, whose bit streams do not change between versions."""
    noise = torch.from_numpy(rng.standard_normal(shape).astype(np.float32))
    if name == "decoder.final_layer_norm.weight":
        return 12.0 + noise  # the small embedding is the head, and a tied head also divides by sqrt(d_model)
    if name.endswith("norm.weight"):
        return 1.0 + 0.1 * noise  # not all ones: a norm that is skipped or swapped must show
    if name.endswith(".bias"):
        return 0.3 * noise
    gain = next(gain for suffix, gain in GAINS if name.endswith(suffix))
    return noise * (gain / shape[1] ** 0.5)


def stack_experts(tensors: dict, config: dict) -> dict:
    """The layout of newer exports: one 3-D tensor for all experts' gate and up, one for their down."""
    stacked = {name: tensor for name, tensor in tensors.items() if ".experts." not in name}
    for layer in range(config["num_hidden_layers"]):
        if not is_sparse(config, layer):
            continue
        prefix = f"model.layers.{layer}.mlp.experts"

        def projection(expert, which):
            return tensors[f"{prefix}.{expert}.{which}_proj.weight"]

        experts = range(config["num_experts"])
        gate_up = [torch.cat([projection(e, "gate"), projection(e, "up")]) for e in experts]
        stacked[f"{prefix}.gate_up_proj"] = torch.stack(gate_up)
        stacked[f"{prefix}.down_proj"] = torch.stack([projection(e, "down") for e in experts])
    return stacked


def rotary_tensors(config: dict) -> dict:
    """The inverse frequencies that old exports carried. Rounded to the checkpoint's dtype like everything else
    in it, so that a reader that uses them instead of computing its own gets visibly different logits."""
    dim = head_dim(config)
    inv_freq = 1.0 / config["rope_theta"] ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim)
    return {f"model.layers.{layer}.self_attn.rotary_emb.inv_freq": inv_freq.clone()
            for layer in range(config["num_hidden_layers"])}


def make_tensors(model: TinyModel, seed: int) -> dict:
    """Every tensor of the checkpoint, in its storage dtype."""
    rng = np.random.default_rng(seed)
    tensors = {name: random_tensor(name, shape, rng) for name, shape in tensor_shapes(model.config).items()}
    if model.explicit_lm_head:
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
    if model.embedding_copies:
        tensors |= {f"{x}.embed_tokens.weight": tensors["shared.weight"].clone() for x in ("encoder", "decoder")}
    if model.stale_inv_freq:
        tensors |= rotary_tensors(model.config)
    if model.stacked_experts:
        tensors = stack_experts(tensors, model.config)

    def storage_dtype(name):  # xverse keeps its router in fp32 whatever the file's dtype
        return torch.float32 if name.endswith("mlp.router.weight") else STORAGE_DTYPES[model.dtype]

    return {name: tensor.to(storage_dtype(name)).contiguous() for name, tensor in tensors.items()}


def split_into_shards(tensors: dict, count: int) -> list[dict]:
    """Cuts the list of tensors at equal shares of bytes, wherever that falls: experts of a layer may part."""
    total = sum(t.nbytes for t in tensors.values())
    shards, seen = [{} for _ in range(count)], 0
    for name, tensor in tensors.items():
        shards[min(count - 1, seen * count // total)][name] = tensor
        seen += tensor.nbytes
    return shards


def write_json(path: Path, value) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")


def save_tensors(tensors: dict, path: Path) -> None:
    save_file(tensors, path, metadata={"format": "pt"})
    path.chmod(0o644)  # safetensors makes files only their owner can read


def write_checkpoint(model: TinyModel, seed: int, directory: Path) -> None:
    """A Hugging Face directory as published: config, optional generation config, one file or shards and index."""
    directory.mkdir(parents=True, exist_ok=True)
    for stale in directory.iterdir():
        stale.unlink()
    write_json(directory / "config.json", model.config)
    if model.generation_config:
        write_json(directory / "generation_config.json", model.generation_config)

    tensors = make_tensors(model, seed)
    if model.shards == 1:
        save_tensors(tensors, directory / "model.safetensors")
        return
    weight_map = {}
    for number, shard in enumerate(split_into_shards(tensors, model.shards), start=1):
        file_name = f"model-{number:05d}-of-{model.shards:05d}.safetensors"
        save_tensors(shard, directory / file_name)
        weight_map |= dict.fromkeys(shard, file_name)
    total_size = sum(t.nbytes for t in tensors.values())
    write_json(directory / "model.safetensors.index.json",
               {"metadata": {"total_size": total_size}, "weight_map": dict(sorted(weight_map.items()))})
