# SPDX-License-Identifier: Apache-2.0
"""A plain fp32 decoder for the families that transformers has no class for.

Pre-norm, multi-head attention without bias, half-split RoPE, and whatever MLP the family's own file supplies.
Module names are the checkpoint's tensor names, so that load_state_dict(strict) checks every one of them.
No cache, no masks for padding, no speed: it is here to be read.
"""

from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional as F


class RMSNorm(nn.Module):
    def __init__(self, width: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))
        self.eps = eps

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


class SwiGLU(nn.Module):
    def __init__(self, hidden: int, inter: int):
        super().__init__()
        self.gate_proj = nn.Linear(hidden, inter, bias=False)
        self.up_proj = nn.Linear(hidden, inter, bias=False)
        self.down_proj = nn.Linear(inter, hidden, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


def rotate(x, theta: float):
    """Half-split RoPE on x (B, heads, T, head_dim): element i turns with element i + head_dim/2."""
    length, dim = x.shape[-2:]
    inv_freq = 1.0 / theta ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim)
    angle = torch.arange(length, dtype=torch.float32)[:, None] * inv_freq  # (T, head_dim/2)
    cos, sin = angle.cos(), angle.sin()
    low, high = x.chunk(2, dim=-1)
    return torch.cat([low * cos - high * sin, high * cos + low * sin], dim=-1)


class Attention(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        hidden = config["hidden_size"]
        self.heads, self.theta = config["num_attention_heads"], config["rope_theta"]
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(self, name, nn.Linear(hidden, hidden, bias=False))

    def forward(self, x):
        batch, length, hidden = x.shape

        def split(projection):  # (B, T, hidden) -> (B, heads, T, head_dim)
            return projection(x).view(batch, length, self.heads, -1).transpose(1, 2)

        q, k, v = rotate(split(self.q_proj), self.theta), rotate(split(self.k_proj), self.theta), split(self.v_proj)
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, float("-inf")).softmax(-1)
        return self.o_proj((weights @ v).transpose(1, 2).reshape(batch, length, hidden))


class SparseMLP(nn.Module):
    """Routed experts plus one shared expert. `router` names the submodule as the checkpoint does; it returns
    (logits, weights, chosen experts), each with one row per token."""

    def __init__(self, hidden: int, inter: int, experts: int, shared_inter: int, router_name: str, router: nn.Module):
        super().__init__()
        self.router_name = router_name
        self.add_module(router_name, router)
        self.experts = nn.ModuleList(SwiGLU(hidden, inter) for _ in range(experts))
        self.shared_experts = SwiGLU(hidden, shared_inter)

    def forward(self, x):
        tokens = x.reshape(-1, x.shape[-1])
        _, weights, chosen = getattr(self, self.router_name)(tokens)
        out = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            token, rank = torch.where(chosen == number)
            out[token] += weights[token, rank, None] * expert(tokens[token])
        return out.view_as(x) + self.shared_experts(x)


class Layer(nn.Module):
    def __init__(self, config: dict, mlp: nn.Module):
        super().__init__()
        hidden, eps = config["hidden_size"], config["rms_norm_eps"]
        self.input_layernorm = RMSNorm(hidden, eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RMSNorm(hidden, eps)
        self.mlp = mlp

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Stack(nn.Module):
    def __init__(self, config: dict, make_mlp: Callable[[dict, int], nn.Module]):
        super().__init__()
        self.embed_tokens = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList(Layer(config, make_mlp(config, i)) for i in range(config["num_hidden_layers"]))
        self.norm = RMSNorm(config["hidden_size"], config["rms_norm_eps"])


class Decoder(nn.Module):
    """Token ids (B, T) -> logits (B, T, vocab)."""

    def __init__(self, config: dict, make_mlp: Callable[[dict, int], nn.Module]):
        super().__init__()
        self.model = Stack(config, make_mlp)
        self.lm_head = nn.Linear(config["hidden_size"], config["vocab_size"], bias=False)

    def forward(self, ids):
        x = self.model.embed_tokens(ids)
        for layer in self.model.layers:
            x = layer(x)
        return self.lm_head(self.model.norm(x))


def load_decoder(config: dict, make_mlp: Callable[[dict, int], nn.Module], directory: Path) -> Decoder:
    """Reads every tensor of the directory in fp32; a missing or extra one is an error."""
    tensors = {}
    for path in sorted(directory.glob("*.safetensors")):
        tensors |= {name: tensor.float() for name, tensor in load_file(path).items()}
    # Frequencies belong to the architecture; what old exports stored of them is ignored.
    tensors = {name: t for name, t in tensors.items() if not name.endswith("rotary_emb.inv_freq")}
    if config["tie_word_embeddings"]:
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]
    decoder = Decoder(config, make_mlp)
    decoder.load_state_dict(tensors, strict=True)
    return decoder.eval()
