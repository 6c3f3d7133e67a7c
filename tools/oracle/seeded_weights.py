# SPDX-License-Identifier: Apache-2.0
"""The weights of a tiny model from its weights.json: the recipe of README.md ("Weights from a seed"), whose other
implementation is tests/golden_writer. Both give the same files, byte for byte.

Only integers modulo 2^64, one IEEE double product and one sum go into a value, so that no library or machine has
a part in it.
"""

import hashlib
import itertools
import json
import math
import re
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

SPEC_NAME = "weights.json"
INDEX_NAME = "model.safetensors.index.json"
STORAGE_DTYPES = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32, "U8": torch.uint8}

FNV_OFFSET, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
SPLITMIX_STEP = 0x9E3779B97F4A7C15
MASK = 2**64 - 1
WORDS_PER_VALUE = 3
MEAN_OF_SUM = 12 * 0xFFFF // 2  # of twelve 16-bit numbers


def fnv1a64(text: str) -> int:
    value = FNV_OFFSET
    for byte in text.encode():
        value = (value ^ byte) * FNV_PRIME & MASK
    return value


def mixed(state: np.ndarray) -> np.ndarray:
    """SplitMix64's output for each state. uint64 arrays wrap around silently."""
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def noise(seed: int, key: str, count: int) -> np.ndarray:
    """`count` doubles of mean 0 and deviation 1, multiples of 2^-16: a sum of twelve uniform numbers each."""
    start = int(mixed(np.array([seed], np.uint64))[0]) ^ fnv1a64(key)
    steps = np.arange(1, WORDS_PER_VALUE * count + 1, dtype=np.uint64)
    words = mixed(np.array([start], np.uint64) + steps * np.uint64(SPLITMIX_STEP)).reshape(count, WORDS_PER_VALUE)
    parts = [(words >> np.uint64(shift)) & np.uint64(0xFFFF) for shift in (0, 16, 32, 48)]
    sums = sum(part.sum(axis=1, dtype=np.uint64) for part in parts).astype(np.int64)
    return (sums - MEAN_OF_SUM).astype(np.float64) / 65536.0


def expanded(pattern: str) -> list[str]:
    """"layers.{0,2-3}.x" -> layers.0.x, layers.2.x, layers.3.x; several braces: all combinations."""
    choices = []
    for number, piece in enumerate(re.split(r"\{([^{}]*)\}", pattern)):
        if number % 2 == 0:
            choices.append([piece])
            continue
        values = []
        for part in piece.split(","):
            first, _, last = part.partition("-")
            values += [str(value) for value in range(int(first), int(last or first) + 1)]
        choices.append(values)
    return ["".join(combination) for combination in itertools.product(*choices)]


def values_of(entry: dict, name: str, seed: int) -> np.ndarray:
    """The doubles of one tensor, before any rounding."""
    count = math.prod(entry["shape"])
    if "values" in entry:
        return np.array(entry["values"], np.float64)
    return entry.get("mean", 0.0) + entry["scale"] * noise(seed, entry.get("key", name), count)


def make_tensors(spec: dict) -> dict[str, torch.Tensor]:
    """Every tensor of the checkpoint in its storage dtype: double to float32 to storage, each to nearest even;
    bytes are whole numbers modulo 256."""
    tensors = {}
    for entry in spec["tensors"]:
        dtype = STORAGE_DTYPES[entry.get("dtype", spec["dtype"])]
        for name in expanded(entry["name"]):
            if name in tensors:
                raise ValueError(f"{SPEC_NAME}: {name} is listed twice")
            values = values_of(entry, name, spec["seed"]).astype(np.float32).reshape(entry["shape"])
            if dtype == torch.uint8:
                values = (np.rint(values).astype(np.int64) & 255).astype(np.uint8)
            tensors[name] = torch.from_numpy(values).to(dtype)
    return tensors


def write_checkpoint(source: Path, directory: Path) -> None:
    """A Hugging Face directory as published, from `source`: its JSON files, and the weights in one file or in the
    shards that its index names."""
    directory.mkdir(parents=True, exist_ok=True)
    for stale in directory.iterdir():
        stale.unlink()
    for file in source.glob("*.json"):
        if file.name != SPEC_NAME:
            (directory / file.name).write_bytes(file.read_bytes())
    tensors = make_tensors(json.loads((source / SPEC_NAME).read_text()))
    shards = {"model.safetensors": list(tensors)}
    if (source / INDEX_NAME).exists():
        weight_map = json.loads((source / INDEX_NAME).read_text())["weight_map"]
        if set(weight_map) != set(tensors):
            raise ValueError(f"{source}: {SPEC_NAME} and {INDEX_NAME} name different tensors")
        shards = {}
        for name, file_name in weight_map.items():
            shards.setdefault(file_name, []).append(name)
    for file_name, names in shards.items():  # the library sorts: larger elements first, then by name
        save_file({name: tensors[name] for name in names}, directory / file_name, metadata={"format": "pt"})


def weight_hashes(directory: Path) -> dict[str, str]:
    """SHA-256 of every weight file."""
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest()
            for file in sorted(directory.glob("*.safetensors"))}
