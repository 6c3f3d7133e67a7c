# SPDX-License-Identifier: Apache-2.0
"""One interface to whatever runs a model directory in fp32: transformers, or a reference of this folder.

Always loaded fresh from the files on disk and converted up to fp32, never a model cast down and up again: that
would round the RoPE tables too, and the goldens would be wrong by a little everywhere.
"""

import json
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

import mxfp4
import reference_deepseek
import reference_xverse
from reference_decoder import load_decoder

REFERENCES = {"deepseek": reference_deepseek, "xverse": reference_xverse}  # families transformers lacks


class Oracle:
    """Logits, and beside them how decisively every router chose."""

    def __init__(self, directory: Path):
        self.config = json.loads((directory / "config.json").read_text())
        reference = REFERENCES.get(self.config["model_type"])
        if reference:
            self.name = reference.__name__ + ".py"
            self.model = load_decoder(self.config, reference.make_mlp, directory)
        else:
            self.name = "transformers"
            self.model = load_transformers(directory)
        self._router_logits = []
        routers = [m for m in self.model.modules() if type(m).__name__.lower().endswith("router")]
        for router in routers:
            router.register_forward_hook(lambda module, inputs, output: self._router_logits.append(output[0]))

    @torch.inference_mode()
    def run(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """ids (B, T) -> logits (B, T, vocab) and router logits (B, T, sparse layers, experts).

        Every position is computed anew, so no cache can have a part in the result.
        """
        self._router_logits.clear()
        if self.name == "transformers":
            logits = self.model(ids, use_cache=False).logits
        else:
            logits = self.model(ids)
        router_logits = torch.stack([r.view(*ids.shape, -1) for r in self._router_logits], dim=2)
        return logits, router_logits

    @property
    def top_k(self) -> int:
        return self.config.get("num_experts_per_tok") or self.config["moe_top_k"]

    def group_best(self, router_logits: torch.Tensor) -> torch.Tensor | None:
        """The greatest logit of each group of experts, where groups are chosen first."""
        if self.config.get("topk_method") != "group_limited_greedy":
            return None
        return router_logits.unflatten(-1, (self.config["n_group"], -1)).amax(-1)

    def open_to_choice(self, router_logits: torch.Tensor) -> torch.Tensor:
        """Router logits; minus infinity in groups that were not chosen."""
        group_best = self.group_best(router_logits)
        if group_best is None:
            return router_logits
        threshold = group_best.topk(self.config["topk_group"], dim=-1).values[..., -1:]
        kept = (group_best >= threshold).repeat_interleave(router_logits.shape[-1] // self.config["n_group"], dim=-1)
        return router_logits.masked_fill(~kept, float("-inf"))

    def router_gaps(self, router_logits: torch.Tensor) -> torch.Tensor:
        """Distance in logits between the last expert (or group) chosen and the first one not: the last axis goes."""
        within = gap_after(self.open_to_choice(router_logits), self.top_k)
        group_best = self.group_best(router_logits)
        return within if group_best is None else torch.minimum(within, gap_after(group_best, self.config["topk_group"]))

    def uses_every_expert(self, router_logits: torch.Tensor) -> bool:
        """(B, T, layers, experts): whether each expert of each layer is chosen by some token."""
        chosen = self.open_to_choice(router_logits).topk(self.top_k, dim=-1).indices
        return all(chosen[:, :, layer].unique().numel() == router_logits.shape[-1] for layer in range(chosen.shape[2]))


def gap_after(values: torch.Tensor, k: int) -> torch.Tensor:
    best = values.topk(k + 1, dim=-1).values
    return best[..., k - 1] - best[..., k]


def load_transformers(directory: Path) -> torch.nn.Module:
    """Refuses a checkpoint that transformers fills up or ignores in part, since the golden would not be of it."""
    if "quantization_config" in json.loads((directory / "config.json").read_text()):
        return check_loaded(directory, mxfp4.load_dequantised(directory), {})
    return check_loaded(directory, *AutoModelForCausalLM.from_pretrained(
        directory, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager",
        output_loading_info=True))


def check_loaded(directory: Path, model: torch.nn.Module, info: dict) -> torch.nn.Module:
    problems = {what: names for what, names in info.items() if names}
    if problems:
        raise ValueError(f"{directory}: transformers did not load exactly what is stored: {problems}")
    for name, buffer in model.named_buffers():
        if buffer.is_floating_point() and buffer.dtype != torch.float32:
            raise ValueError(f"{directory}: buffer {name} is {buffer.dtype}, not float32")
    return model.eval()
