# SPDX-License-Identifier: Apache-2.0
"""Goldens of encoder-decoders (switch_transformers). See README.md for what a golden holds.

A forward of such a model reads the whole encoder input at once, so its tokens are drawn together: many random inputs,
of which one is kept where no router hesitates. The decoder's tokens follow one by one, as for other models.
"""

import json
from pathlib import Path

import numpy as np
import torch
import transformers
from transformers import AutoModelForSeq2SeqLM

from oracle import check_loaded, gap_after

ENCODER_TOKENS = 48
DECODER_TOKENS = 32
GREEDY_TOKENS = 24
ENCODER_CANDIDATES = 1024
DECODER_CANDIDATES = 16
MIN_ROUTER_GAP = 0.02  # relative to the token's greatest router logit, as for other models
MIN_ARGMAX_MARGIN = 0.05
MIN_DISTINCT_GREEDY = 6
MAX_UNUSED_EXPERTS = 1  # in a layer: top-1 routers of random weights rarely choose all


class EncoderDecoder:
    """A model directory in fp32: encoder, decoder, and how decisively every router chose."""

    name = "transformers"

    def __init__(self, directory: Path):
        self.config = json.loads((directory / "config.json").read_text())
        self.start = self.config["decoder_start_token_id"]
        self.model = check_loaded(directory, *AutoModelForSeq2SeqLM.from_pretrained(
            directory, dtype=torch.float32, attn_implementation="eager", output_loading_info=True))
        self._routed = []
        for router in [m for m in self.model.modules() if type(m).__name__.lower().endswith("router")]:
            router.register_forward_hook(lambda module, inputs, output: self._routed.append((output[0], output[2])))

    def take_gaps(self) -> tuple[torch.Tensor, torch.Tensor, int]:
        """The smallest gap (B, T) since the last call, the same relative, and how many tokens were dropped."""
        gaps = torch.stack([gap_after(logits, 1) for _, logits in self._routed])
        relative = gaps / torch.stack([logits.abs().amax(-1) for _, logits in self._routed])
        dropped = sum(int((chosen.sum(-1) == 0).sum()) for chosen, _ in self._routed)
        self._routed.clear()
        return gaps.amin(0), relative.amin(0), dropped

    def unused_experts(self) -> int:
        """The most experts of one layer that no token has chosen since the last take_gaps()."""
        return max(logits.shape[-1] - logits.argmax(-1).unique().numel() for _, logits in self._routed)

    @torch.inference_mode()
    def encode(self, ids: torch.Tensor):
        return self.model.get_encoder()(ids)

    @torch.inference_mode()
    def decode(self, encoded, ids: torch.Tensor) -> torch.Tensor:
        """Logits (B, T, vocab) of one forward over all of `ids`: expert capacity counts over all of them."""
        return self.model(encoder_outputs=encoded, decoder_input_ids=ids, use_cache=False).logits

    @torch.inference_mode()
    def generate(self, encoded, steps: int) -> tuple[list[int], float, float]:
        """Greedy tokens behind the start token, one forward each (so capacity never bites); least margin and gap."""
        ids, cache, margins, gaps, out = torch.tensor([[self.start]]), None, [], [], []
        for _ in range(steps):
            result = self.model(encoder_outputs=encoded, decoder_input_ids=ids, past_key_values=cache, use_cache=True)
            cache = result.past_key_values
            best = result.logits[0, -1].topk(2)
            margins.append((best.values[0] - best.values[1]).item())
            gaps.append(self.take_gaps()[1].min().item())
            ids = best.indices[:1][None]
            out.append(int(ids))
        return out, min(margins), min(gaps)


def choose_decoder_tokens(oracle: EncoderDecoder, encoded, rng: np.random.Generator) -> list[int]:
    """The start token, then random ones, each the first of a few at which no router hesitates (or the best)."""
    tokens = [oracle.start]
    batch = type(encoded)(last_hidden_state=encoded.last_hidden_state.expand(DECODER_CANDIDATES, -1, -1))
    while len(tokens) < DECODER_TOKENS:
        candidates = rng.choice(oracle.config["vocab_size"], DECODER_CANDIDATES, replace=False)
        oracle.decode(batch, torch.tensor([[*tokens, int(c)] for c in candidates]))
        gaps = oracle.take_gaps()[1][:, -1]
        good = torch.nonzero(gaps >= MIN_ROUTER_GAP)
        tokens.append(int(candidates[int(good[0]) if len(good) else int(gaps.argmax())]))
    return tokens


def choose_tokens(directory: Path, seed: int) -> dict | None:
    """Encoder and decoder tokens that make a golden of the weights in `directory` that no rounding can overturn."""
    oracle = EncoderDecoder(directory)
    rng = np.random.default_rng([seed, 1])
    inputs = torch.from_numpy(rng.integers(0, oracle.config["vocab_size"], (ENCODER_CANDIDATES, ENCODER_TOKENS)))
    oracle.encode(inputs)
    gaps = oracle.take_gaps()[1].amin(-1)
    for row in gaps.argsort(descending=True).tolist():
        if gaps[row] < MIN_ROUTER_GAP:
            return None
        encoded = oracle.encode(inputs[row : row + 1])
        unused = oracle.unused_experts()
        oracle.take_gaps()
        if unused > MAX_UNUSED_EXPERTS:
            continue
        greedy, margin, gap = oracle.generate(encoded, GREEDY_TOKENS)
        if margin < MIN_ARGMAX_MARGIN or gap < MIN_ROUTER_GAP or len(set(greedy)) < MIN_DISTINCT_GREEDY:
            continue
        if oracle.config["eos_token_id"] in greedy:
            continue
        tokens = choose_decoder_tokens(oracle, encoded, rng)
        oracle.decode(encoded, torch.tensor([tokens]))
        unused = oracle.unused_experts()
        if oracle.take_gaps()[1].min() >= MIN_ROUTER_GAP and unused <= MAX_UNUSED_EXPERTS:
            return {"encoder_tokens": inputs[row].tolist(), "tokens": tokens}
    return None


def compute_golden(directory: Path, chosen: dict) -> tuple[dict, np.ndarray]:
    """From a model loaded anew: the golden's numbers, and the logits (T, vocab) of every decoder position."""
    oracle = EncoderDecoder(directory)
    encoded = oracle.encode(torch.tensor([chosen["encoder_tokens"]]))
    encoder_gap, encoder_relative, encoder_dropped = oracle.take_gaps()
    logits = oracle.decode(encoded, torch.tensor([chosen["tokens"]]))[0]
    gap, relative, dropped = oracle.take_gaps()
    greedy, margin, greedy_gap = oracle.generate(encoded, GREEDY_TOKENS)
    golden = {
        "encoder_tokens": chosen["encoder_tokens"],
        "tokens": chosen["tokens"],
        "greedy": greedy,
        "max_abs_logit": logits.abs().max().item(),
        "min_router_gap": min(encoder_gap.min().item(), gap.min().item()),
        "min_router_gap_relative": min(encoder_relative.min().item(), relative.min().item(), greedy_gap),
        "min_argmax_margin": margin,
        "dropped": [encoder_dropped, dropped],
        "oracle": oracle.name,
        "transformers": transformers.__version__,
        "torch": torch.__version__.split("+")[0],
    }
    return golden, logits.numpy()
