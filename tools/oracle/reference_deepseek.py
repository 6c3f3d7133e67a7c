# SPDX-License-Identifier: Apache-2.0
"""deepseek (deepseek-moe-16b): softmax over all experts, top-k, weights as they come, shared experts without gate."""

import torch
from torch import nn
from torch.nn import functional as F

from reference_decoder import SparseMLP, SwiGLU


class DeepseekRouter(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        self.top_k, self.normalise = config["num_experts_per_tok"], config["norm_topk_prob"]
        self.weight = nn.Parameter(torch.empty(config["n_routed_experts"], config["hidden_size"]))

    def forward(self, tokens):
        logits = F.linear(tokens, self.weight)
        weights, chosen = logits.softmax(-1).topk(self.top_k, dim=-1)
        if self.normalise:
            weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
        return logits, weights, chosen


def make_mlp(config: dict, layer: int) -> nn.Module:
    hidden, inter = config["hidden_size"], config["moe_intermediate_size"]
    # The period counts from layer 0, not from the first sparse layer.
    if layer < config["first_k_dense_replace"] or layer % config["moe_layer_freq"] != 0:
        return SwiGLU(hidden, config["intermediate_size"])
    return SparseMLP(hidden, inter, config["n_routed_experts"], config["n_shared_experts"] * inter,
                     router_name="gate", router=DeepseekRouter(config))
