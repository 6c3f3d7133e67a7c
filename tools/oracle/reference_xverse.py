# SPDX-License-Identifier: Apache-2.0
"""xverse (XVERSE-MoE-A4.2B): fp32 router, top-k weights divided by their sum plus 1e-6, shared experts without gate."""

import torch
from torch import nn
from torch.nn import functional as F

from reference_decoder import SparseMLP


class XverseRouter(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        self.top_k = config["moe_top_k"]
        self.weight = nn.Parameter(torch.empty(config["num_experts"], config["hidden_size"], dtype=torch.float32))

    def forward(self, tokens):
        logits = F.linear(tokens.float(), self.weight)
        weights, chosen = logits.softmax(-1).topk(self.top_k, dim=-1)
        return logits, weights / (weights.sum(-1, keepdim=True) + 1e-6), chosen


def make_mlp(config: dict, layer: int) -> nn.Module:
    del layer  # every layer is sparse
    hidden, inter = config["hidden_size"], config["intermediate_size"]
    return SparseMLP(hidden, inter, config["num_experts"], config["num_shared_experts"] * inter,
                     router_name="router", router=XverseRouter(config))
