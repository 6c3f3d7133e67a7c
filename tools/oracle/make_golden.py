# SPDX-License-Identifier: Apache-2.0
"""Makes and checks the golden files that the C++ tests replay. See README.md beside this file.

    python make_golden.py models [NAME ...]     tiny random checkpoints and their goldens
    python make_golden.py fable --model DIR     goldens of the bundled model
    python make_golden.py verify [NAME ...]     recompute every golden from the files on disk and compare
    python make_golden.py verify --built build/release/golden/models    the same with the files that C++ wrote
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers

import encoder_decoder
from oracle import Oracle
from seeded_weights import weight_hashes, write_checkpoint
from tiny_configs import MODELS, TinyModel
from tiny_weights import write_sources

ROOT = Path(__file__).resolve().parents[2]
GOLDEN_MODELS = ROOT / "tests" / "golden" / "models"
GOLDEN_FABLE = ROOT / "tests" / "golden" / "fable"

PROMPT_TOKENS = 48
GREEDY_TOKENS = 24
FABLE_PROMPT_TOKENS = 64
FABLE_GREEDY_TOKENS = 32
FABLE_TOP = 8

# A golden must not hinge on the last bits of a sum: engines that sum in another order differ by about 1e-6 of the
# greatest value. Router gaps are in units of the token's greatest router logit, the argmax margin in logits.
MIN_PROMPT_ROUTER_GAP = 0.03
MIN_GREEDY_ROUTER_GAP = 0.02
MIN_ARGMAX_MARGIN = 0.05
MIN_DISTINCT_GREEDY = 8  # a continuation that repeats one token would test little
PROMPT_CANDIDATES = 16
ENDING_CANDIDATES = 200
MAX_SEEDS = 200


# --- choosing tokens -------------------------------------------------------------------------------------------


def stop_ids(config: dict) -> set[int]:
    eos = config["eos_token_id"]
    return set(eos if isinstance(eos, list) else [eos])


def smallest_gap(oracle: Oracle, router_logits: torch.Tensor) -> torch.Tensor:
    """(B, T, layers, experts) -> smallest gap of each position, relative to that router's greatest logit, (B, T)."""
    return (oracle.router_gaps(router_logits) / router_logits.abs().amax(-1)).amin(-1)


def choose_prompt(oracle: Oracle, rng: np.random.Generator, length: int) -> list[int]:
    """Random tokens, each the first of a few at which no router hesitates (or the best of them)."""
    tokens = []
    while len(tokens) < length:
        candidates = rng.choice(oracle.config["vocab_size"], PROMPT_CANDIDATES, replace=False)
        ids = torch.tensor([[*tokens, int(c)] for c in candidates])
        gaps = smallest_gap(oracle, oracle.run(ids)[1])[:, -1]
        good = torch.nonzero(gaps >= MIN_PROMPT_ROUTER_GAP)
        tokens.append(int(candidates[int(good[0]) if len(good) else int(gaps.argmax())]))
    return tokens


def continue_greedily(oracle: Oracle, ids: torch.Tensor, steps: int):
    """ids (B, T) -> generated (B, steps), and over these steps the smallest top-1 margin and router gap, (B)."""
    margins, gaps, prompt = [], [], ids.shape[1]
    for _ in range(steps):
        logits, router_logits = oracle.run(ids)
        best = logits[:, -1].topk(2, dim=-1)
        margins.append(best.values[:, 0] - best.values[:, 1])
        gaps.append(smallest_gap(oracle, router_logits)[:, -1])
        ids = torch.cat([ids, best.indices[:, :1]], dim=1)
    return ids[:, prompt:], torch.stack(margins).amin(0), torch.stack(gaps).amin(0)


def choose_ending(oracle: Oracle, rng: np.random.Generator, prompt: list[int]) -> list[int] | None:
    """The last prompt token decides the continuation: takes the one whose routers hesitate least, if any will do."""
    endings = rng.choice(oracle.config["vocab_size"], ENDING_CANDIDATES, replace=False)
    ids = torch.tensor([[*prompt, int(ending)] for ending in endings])
    greedy, margins, gaps = continue_greedily(oracle, ids, GREEDY_TOKENS)
    stops = stop_ids(oracle.config)
    for row in gaps.argsort(descending=True).tolist():
        continuation = set(greedy[row].tolist())
        if gaps[row] < MIN_GREEDY_ROUTER_GAP:
            return None
        if margins[row] >= MIN_ARGMAX_MARGIN and len(continuation) >= MIN_DISTINCT_GREEDY and not continuation & stops:
            return [*prompt, int(endings[row])]
    return None


def is_encoder_decoder(config: dict) -> bool:
    return config.get("is_encoder_decoder", False)


def choose_tokens(model: TinyModel, source: Path, directory: Path):
    """Tries seeds in order until weights and prompt make a golden that no rounding can overturn; leaves what is
    committed in `source`, its weights in `directory`. Returns the seed and what compute_golden takes."""
    for seed in range(model.seed, model.seed + MAX_SEEDS):
        write_sources(model, seed, source)
        write_checkpoint(source, directory)
        if is_encoder_decoder(model.config):
            chosen = encoder_decoder.choose_tokens(directory, seed)
            if chosen:
                return seed, chosen
            continue
        oracle = Oracle(directory)
        rng = np.random.default_rng([seed, 1])
        tokens = choose_ending(oracle, rng, choose_prompt(oracle, rng, PROMPT_TOKENS - 1))
        if tokens and oracle.uses_every_expert(oracle.run(torch.tensor([tokens]))[1]):
            return seed, tokens
    raise RuntimeError(f"{model.name}: no seed from {model.seed} on gives decisive routing")


# --- tiny models -----------------------------------------------------------------------------------------------


def compute_golden(directory: Path, tokens) -> tuple[dict, np.ndarray]:
    """From a model loaded anew: the golden's numbers, and the logits (T, vocab) of every prompt position."""
    if isinstance(tokens, dict):
        return encoder_decoder.compute_golden(directory, tokens)
    oracle = Oracle(directory)
    prompt = torch.tensor([tokens])
    greedy, margin, _ = continue_greedily(oracle, prompt, GREEDY_TOKENS)
    fed = torch.cat([prompt, greedy[:, :-1]], dim=1)  # the last generated token never enters the model
    router_logits = oracle.run(fed)[1]
    gaps = oracle.router_gaps(router_logits)
    logits = oracle.run(prompt)[0][0]
    golden = {
        "tokens": tokens,
        "greedy": greedy[0].tolist(),
        "max_abs_logit": logits.abs().max().item(),
        "min_router_gap": gaps.min().item(),
        "min_router_gap_relative": smallest_gap(oracle, router_logits).min().item(),
        "min_argmax_margin": margin.item(),
        "oracle": oracle.name,
        "transformers": transformers.__version__,
        "torch": torch.__version__.split("+")[0],
    }
    return golden, logits.numpy()


def write_golden(path: Path, golden: dict) -> None:
    """JSON with one key a line: lists of numbers stay readable in a diff."""
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in golden.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def save_npy(path: Path, array: np.ndarray) -> None:
    with path.open("wb") as file:
        np.lib.format.write_array(file, np.ascontiguousarray(array, dtype="<f4"), version=(1, 0))


def golden_directory(directory: Path) -> Path:
    return directory.with_name(directory.name + ".golden")


def make_model(model: TinyModel, out: Path) -> None:
    source = out / model.name
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        seed, tokens = choose_tokens(model, source, directory)
        golden, logits = compute_golden(directory, tokens)
        golden["seed"] = seed
        golden["oddities"] = model.oddities
        golden["sha256"] = weight_hashes(directory)
        size = sum(f.stat().st_size for f in directory.iterdir())
    golden_directory(source).mkdir(exist_ok=True)
    write_golden(golden_directory(source) / "golden.json", golden)
    save_npy(golden_directory(source) / "logits.npy", logits)
    print(f"{model.name:21s} {size / 1000:6.1f} kB  seed {seed:2d}  max|logit| {golden['max_abs_logit']:5.2f}  "
          f"router gap {golden['min_router_gap']:.3f} (relative {golden['min_router_gap_relative']:.4f})  "
          f"argmax margin {golden['min_argmax_margin']:.3f}  distinct {len(set(golden['greedy']))}", flush=True)


def verify_model(name: str, out: Path, built: Path | None) -> bool:
    """Whether the files on disk still give the golden beside them: the weights bit for bit, the logits to the last
    few bits of fp32. `built` holds weights that C++ wrote; else they are made anew."""
    source = out / name
    stored = json.loads((golden_directory(source) / "golden.json").read_text())
    stored_logits = np.load(golden_directory(source) / "logits.npy")
    with tempfile.TemporaryDirectory() as scratch:
        directory = built / name if built else Path(scratch)
        if not built:
            write_checkpoint(source, directory)
        same_weights = weight_hashes(directory) == stored["sha256"]
        golden, logits = compute_golden(directory, stored if "encoder_tokens" in stored else stored["tokens"])
    difference = float(np.abs(logits - stored_logits).max())
    ok = same_weights and golden["greedy"] == stored["greedy"] and difference <= 1e-5 * stored["max_abs_logit"]
    print(f"{name:21s} {'ok' if ok else 'DIFFERS'}  weights {'the same' if same_weights else 'DIFFER'}  "
          f"greatest logit difference {difference:.2e}", flush=True)
    return ok


# --- the bundled model -----------------------------------------------------------------------------------------


def make_fable(model_directory: Path, text: Path, out: Path) -> None:
    """Too many logits to keep whole: each position keeps its argmax, logsumexp and best few."""
    from tokenizers import Tokenizer  # only here, so that the tiny models need no tokenizer package

    tokenizer = Tokenizer.from_file(str(model_directory / "tokenizer.json"))
    tokens = tokenizer.encode(text.read_text(), add_special_tokens=False).ids[:FABLE_PROMPT_TOKENS]
    oracle = Oracle(model_directory)
    prompt = torch.tensor([tokens])
    greedy, margin, _ = continue_greedily(oracle, prompt, FABLE_GREEDY_TOKENS)
    logits = oracle.run(prompt)[0]
    router_logits = oracle.run(torch.cat([prompt, greedy[:, :-1]], dim=1))[1]
    best = logits[0].topk(FABLE_TOP, dim=-1)
    golden = {
        "tokens": tokens,
        "greedy": greedy[0].tolist(),
        "argmax": best.indices[:, 0].tolist(),
        "logsumexp": logits[0].logsumexp(-1).tolist(),
        "top": [[[int(i), float(v)] for i, v in zip(ids, values)]
                for ids, values in zip(best.indices, best.values, strict=True)],
        "max_abs_logit": logits.abs().max().item(),
        "min_router_gap": oracle.router_gaps(router_logits).min().item(),
        "min_argmax_margin": margin.item(),
        "oracle": oracle.name,
        "transformers": transformers.__version__,
        "torch": torch.__version__.split("+")[0],
    }
    out.mkdir(parents=True, exist_ok=True)
    write_golden(out / "golden.json", golden)
    print(f"fable: max|logit| {golden['max_abs_logit']:.2f}  router gap {golden['min_router_gap']:.2e}  "
          f"argmax margin {golden['min_argmax_margin']:.3f}")
    print(tokenizer.decode(tokens), "|", tokenizer.decode(golden["greedy"]))


# --- command line ----------------------------------------------------------------------------------------------


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("models", "verify"):
        command = commands.add_parser(name)
        command.add_argument("names", nargs="*", metavar="NAME", help="which; all if none is given")
        command.add_argument("--out", type=Path, default=GOLDEN_MODELS)
        if name == "verify":
            command.add_argument("--built", type=Path, metavar="DIR", help="directories that the build wrote")
    fable = commands.add_parser("fable")
    fable.add_argument("--model", type=Path, default=ROOT / "models" / "fable-moe-18m")
    fable.add_argument("--text", type=Path, help="default: eval.txt of the model")
    fable.add_argument("--out", type=Path, default=GOLDEN_FABLE)
    arguments = parser.parse_args()
    unknown = set(getattr(arguments, "names", [])) - set(MODELS)
    if unknown:
        parser.error(f"unknown model {sorted(unknown)}; known: {list(MODELS)}")
    return arguments


def main() -> int:
    arguments = parse_arguments()
    torch.set_num_threads(1)  # one order of summation, so that a second run on the machine gives the same files
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    if arguments.command == "fable":
        make_fable(arguments.model, arguments.text or arguments.model / "eval.txt", arguments.out)
        return 0
    names = arguments.names or list(MODELS)
    if arguments.command == "models":
        for name in names:
            make_model(MODELS[name], arguments.out)
        return 0
    return 0 if all([verify_model(name, arguments.out, arguments.built) for name in names]) else 1


if __name__ == "__main__":
    sys.exit(main())
