# SPDX-License-Identifier: Apache-2.0
"""Checks the references of this folder against transformers, which has no class for their families but one that
can be made to compute the same thing: qwen2_moe with zero biases and a shared-expert gate of zero is deepseek with
half of its shared expert, so that doubling `down_proj` (exact in binary) makes the two equal. xverse likewise, but
for the 1e-6 in its divisor.

    python test_references.py
"""

import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from make_golden import GOLDEN_MODELS
from oracle import Oracle
from seeded_weights import write_checkpoint
from tiny_configs import MODELS
from tiny_weights import is_sparse, write_json

TOLERANCE = 2e-5  # relative to the greatest logit: another order of summation, and xverse's 1e-6


def equivalent_config(config: dict) -> dict:
    layers = range(config["num_hidden_layers"])
    inter = config.get("moe_intermediate_size") or config["intermediate_size"]
    shared = config.get("n_shared_experts") or config["num_shared_experts"]
    kept = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act",
            "rms_norm_eps", "rope_theta", "max_position_embeddings", "tie_word_embeddings", "eos_token_id")
    return {key: config[key] for key in kept} | {
        "architectures": ["Qwen2MoeForCausalLM"],
        "model_type": "qwen2_moe",
        "num_key_value_heads": config["num_attention_heads"],
        "moe_intermediate_size": inter,
        "shared_expert_intermediate_size": shared * inter,
        "num_experts": config.get("n_routed_experts") or config["num_experts"],
        "num_experts_per_tok": config.get("num_experts_per_tok") or config["moe_top_k"],
        "norm_topk_prob": config["model_type"] == "xverse",
        "mlp_only_layers": [layer for layer in layers if not is_sparse(config, layer)],
        "torch_dtype": "float32",
    }


def equivalent_tensors(config: dict, tensors: dict) -> dict:
    hidden = config["hidden_size"]
    out = {}
    for name, tensor in tensors.items():
        if name.endswith("rotary_emb.inv_freq"):
            continue
        scale = 2.0 if name.endswith("shared_experts.down_proj.weight") else 1.0
        new_name = name.replace(".shared_experts.", ".shared_expert.").replace(".router.", ".gate.")
        out[new_name] = tensor.float() * scale
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}"
        out |= {f"{prefix}.self_attn.{x}_proj.bias": torch.zeros(hidden) for x in "qkv"}
        if is_sparse(config, layer):
            out[f"{prefix}.mlp.shared_expert_gate.weight"] = torch.zeros(1, hidden)
    return out


def check(name: str) -> bool:
    config = MODELS[name].config
    with tempfile.TemporaryDirectory() as scratch:
        source, directory = Path(scratch) / "source", Path(scratch) / "equivalent"
        write_checkpoint(GOLDEN_MODELS / name, source)
        directory.mkdir()
        write_json(directory / "config.json", equivalent_config(config))
        save_file(equivalent_tensors(config, load_file(source / "model.safetensors")),
                  directory / "model.safetensors", metadata={"format": "pt"})
        generator = torch.Generator().manual_seed(1)
        ids = torch.randint(config["vocab_size"], (2, 40), generator=generator)
        ours, theirs = Oracle(source).run(ids)[0], Oracle(directory).run(ids)[0]
    difference = ((ours - theirs).abs().max() / theirs.abs().max()).item()
    print(f"{name:12s} greatest difference {difference:.1e} of the greatest logit")
    return difference <= TOLERANCE


if __name__ == "__main__":
    names = [name for name, model in MODELS.items() if model.config["model_type"] in ("deepseek", "xverse")]
    sys.exit(0 if all([check(name) for name in names]) else 1)
