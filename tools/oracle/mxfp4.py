# SPDX-License-Identifier: Apache-2.0
"""Experts in MXFP4 as gpt-oss publishes them, as the numbers that they stand for (docs/formats.md). The model then is
transformers' own class with these numbers, in fp32: nothing of its quantised kernels has a part in a golden."""

from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM

FP4 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def dequantised(blocks: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """(…, rows, groups, 16) and (…, rows, groups) -> (…, rows, 32 * groups); the lower half of a byte comes first."""
    codes = torch.stack([blocks & 15, blocks >> 4], dim=-1).flatten(-2).long()
    numbers = FP4[codes].double() * torch.pow(2.0, scales.double() - 127).unsqueeze(-1)
    return numbers.flatten(-2).float()  # exact: two bits of mantissa


def load_dequantised(directory: Path) -> torch.nn.Module:
    """Every tensor of the files is used, once, or this fails."""
    stored = {}
    for file in sorted(directory.glob("*.safetensors")):
        stored |= load_file(file)
    state = {}
    for name, tensor in stored.items():
        if name.endswith("_blocks"):
            stem = name.removesuffix("_blocks")
            state[stem] = dequantised(tensor, stored[f"{stem}_scales"]).transpose(-1, -2).contiguous()
        elif not name.endswith("_scales"):
            state[name] = tensor.float()
    config = AutoConfig.from_pretrained(directory)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager",
                                             experts_implementation="eager")
    model.load_state_dict(state, strict=True)
    return model
