#!/usr/bin/env python3
"""Sweeps of theta and kappa on a store in slices, as Markdown tables.

    tools/slice_sweep.py PROGRAM STORE MODEL TEXT
                         [--tokens N] [--prompts 12] [--theta 0.35] [--memory 32MiB] [--io direct]

theta: what `sluice calibrate --json` says of dbsc. kappa: what the first steps behind prompts find, of `sluice run
--precision dbsc`, over prompts cut from TEXT, which has more than 1000 characters.
"""
import argparse
import json
import math
import subprocess


def sluice(program, *words):
    done = subprocess.run([program, *words, "--json"], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


PROMPT = 1000  # characters


def percent(loss):
    return f"{100 * math.expm1(loss):.3f}"


# The error of percent(loss), where `error` is that of the loss: d(e^x) = e^x dx.
def percent_error(loss, error):
    return f"{100 * math.exp(loss) * error:.3f}"


def thetas(args):
    result = sluice(args.program, "calibrate", args.store, "--reference", args.model, "-f", args.text,
                    "--tokens", str(args.tokens), "--io", args.io)
    print(f"perplexity of the exact model {result['reference']['perplexity']:.3f}, {result['text']['scored']} tokens "
          f"scored in {result['text']['windows']} windows\n")
    print("| | cache | amount | loss % | ± | KiB a token |\n|---|---|---|---|---|---|")
    high = result["high"]
    print(f"| high, against exact | | | {percent(high['loss'])} | {percent_error(high['loss'], high['error'])} | |")
    for point in result["precision"] + result["routing"]:
        name = {"dbsc": f"θ {point.get('theta', 0):.2f}", "low": "low",
                "high": f"mass {point.get('ceiling', 0):.3f}"}[point["precision"]]
        print(f"| {name} | {100 * point['cache']:.0f} % | {point['amount']:.4f} | {percent(point['loss'])} "
              f"| {percent_error(point['loss'], point['error'])} | {point['bytes_per_token'] / 1024:.1f} |")


def prompts_of(args):
    with open(args.text, encoding="utf-8") as file:
        text = file.read()
    return [text[at:at + PROMPT]
            for at in range(0, len(text) - PROMPT, max(1, len(text) // args.prompts))][:args.prompts]


def kappas(args, prompts):
    print("\n| κ | MSB misses % | LSB misses % | KiB a token |\n|---|---|---|---|")
    for kappa in ("0.25", "0.5", "0.75"):
        sums = dict.fromkeys(("msb_hits", "msb_misses", "lsb_hits", "lsb_misses", "bytes", "tokens"), 0)
        for prompt in prompts:
            experts = sluice(args.program, "run", args.store, "--precision", "dbsc", "--theta", str(args.theta),
                             "--kappa", kappa, "--lsb-miss", "fetch", "--memory", args.memory, "-n", "25", "--temp", "0",
                             "--ignore-eos", "--io", args.io, "-p", prompt)["experts"]
            for name in ("msb_hits", "msb_misses", "lsb_hits", "lsb_misses"):
                sums[name] += experts["slices"][name]
            sums["bytes"] += experts["decode"]["bytes_read"]
            sums["tokens"] += experts["decode"]["tokens"]
        rate = {part: 100 * sums[part + "_misses"] / max(1, sums[part + "_misses"] + sums[part + "_hits"])
                for part in ("msb", "lsb")}
        print(f"| {kappa} | {rate['msb']:.1f} | {rate['lsb']:.1f} | {sums['bytes'] / sums['tokens'] / 1024:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("program", "store", "model", "text"):
        parser.add_argument(name)
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--prompts", type=int, default=12)
    parser.add_argument("--theta", type=float, default=0.35)
    parser.add_argument("--memory", default="32MiB")
    parser.add_argument("--io", default="direct")
    args = parser.parse_args()
    if args.prompts < 1:
        parser.error("--prompts is at least 1")
    prompts = prompts_of(args)
    if not prompts:
        parser.error(f"{args.text} has no more than {PROMPT} characters")
    thetas(args)
    kappas(args, prompts)


if __name__ == "__main__":
    main()
