#!/usr/bin/env python3
"""Do llama.cpp and Sluice compute the same function? Logits of every position of one prompt, side by side.

Roundings differ (llama.cpp rounds activations to BF16 before each product and keeps keys and values in F16), so logits agree to a few
thousandths of their spread, and where two experts score alike a router may take the other one: then a position differs more.
Wants numpy. See README.md beside this file."""
import argparse
import os
import random
import subprocess
import sys
import tempfile

import numpy


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    cache = os.environ.get("SLUICE_PEERS", os.path.expanduser("~/.cache/sluice-peers"))
    parser.add_argument("--gguf", required=True)
    parser.add_argument("--model", required=True, help="the same for Sluice: a Hugging Face directory or a store")
    parser.add_argument("--tokens", type=int, default=32, help="random ones")
    parser.add_argument("--vocab", type=int, default=30000, help="ids are drawn below this")
    parser.add_argument("--least", type=float, default=0.95, help="share of positions whose likeliest token must agree")
    parser.add_argument("--sluice", default="build/sluice")
    parser.add_argument("--runner", default=os.path.join(cache, "build/llama-runner"))
    options = parser.parse_args()
    draw = random.Random(1)
    tokens = ",".join(str(draw.randrange(options.vocab)) for _ in range(options.tokens))
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = os.path.join(folder, "ours.npy"), os.path.join(folder, "theirs.f32")
        subprocess.run([options.sluice, "forward", options.model, "--tokens", tokens, "--out", ours, "-q"], check=True)
        subprocess.run([options.runner, "-m", options.gguf, "--tokens", tokens, "-n", "0", "--logits", theirs], check=True,
                       stdout=subprocess.DEVNULL)
        a = numpy.load(ours)
        b = numpy.fromfile(theirs, numpy.float32).reshape(a.shape)
    relative = numpy.sqrt(((a - b) ** 2).mean(1)) / a.std(1)
    agree = float((a.argmax(1) == b.argmax(1)).mean())
    print(f"{len(a)} positions, {a.shape[1]} logits each: root mean square of the difference {numpy.median(relative):.4f} of their "
          f"spread (median; least {relative.min():.4f}, most {relative.max():.4f}); likeliest token equal at {100 * agree:.0f} %")
    if not agree >= options.least:
        sys.exit(f"check.py: expected the same likeliest token at {100 * options.least:.0f} % of the positions or more")


if __name__ == "__main__":
    main()
