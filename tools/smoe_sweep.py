#!/usr/bin/env python3
"""What the router smoe costs and saves over alpha on a store of exact weights, as Markdown tables.

    tools/smoe_sweep.py PROGRAM STORE TEXT HELD_OUT [--tokens 8192] [--experts BYTES] [--io direct]

First what `sluice calibrate` measures with TEXT, which stays in STORE. Then the text HELD_OUT, which chose nothing: by
alpha and by --max-loss, with a quarter, a third and a half of all experts, which have BYTES together (`sluice plan`).
"""
import argparse
import json
import math
import subprocess

ALPHAS = ("0.1", "0.25", "0.35", "0.6")


def sluice(program, *words):
    done = subprocess.run([program, *words, "--json", "-q"], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def percent(share):
    return f"{100 * share:.2f}"


# A loss in nats and its error, in percent: d(e^x) = e^x dx.
def loss_percent(loss, error):
    return f"{percent(math.expm1(loss))} ± {percent(math.exp(loss) * error)}"


def calibration(args):
    result = sluice(args.program, "calibrate", args.store, "-f", args.text, "--tokens", str(args.tokens),
                    "--io", args.io)
    text = result["text"]
    print(f"perplexity with its own experts {result['perplexity']:.3f}, {text['scored']} tokens scored in "
          f"{text['windows']} windows\n")
    print("| in memory | α | scores lost % | loss % | KiB a token |\n|---|---|---|---|---|")
    for point in result["points"]:
        print(f"| {100 * point['cache']:.0f} % | {point['alpha']:g} | {percent(point['amount'])} "
              f"| {loss_percent(point['loss'], point['error'])} | {point['bytes_per_token'] / 1024:.0f} |")


# Tokens of prompts lose nothing, so the loss is that of the tokens behind them.
def held_out(args):
    heads = ("in memory", "", "α", "scores lost %", "loss %", "estimated %", "at most %", "KL, nats",
             "same top token %", "KiB a token")
    print("\n| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    ways = [("", ("--router", "smoe", "--alpha", alpha)) for alpha in ALPHAS]
    ways += [(f"`--max-loss {most}`", ("--max-loss", most)) for most in ("1%", "3%")]
    for name, share in (("25 %", 4), ("33 %", 3), ("50 %", 2)):
        for limit, way in ways:
            result = sluice(args.program, "eval", args.store, "-f", args.held_out, "--ctx", "256", "--prefill",
                            "64", "--reference", args.store, "--cache", "lru", "--prefetch", "none", "--io", args.io,
                            "--capacity", f"{args.experts // share}B", *way)
            routing, decode = result["experts"]["routing"], result["experts"]["decode"]
            loss = (result["nll"] - result["reference"]["nll"]) / result["stepped"]
            behind = result["predicted"] / result["stepped"]
            print(f"| {name} | {limit} | {routing['alpha']:g} "
                  f"| {percent(routing['mass_lost'] / max(1, routing['decode_tokens']))} | {percent(math.expm1(loss))} "
                  f"| {percent(routing['estimated_loss']['total'] or math.nan)} "
                  f"| {percent(routing['estimated_loss']['upper'] or math.nan)} "
                  f"| {result['divergence']['mean'] * behind:.4f} "
                  f"| {100 - (100 - 100 * result['top_agreement']) * behind:.1f} "
                  f"| {decode['bytes_read'] / decode['tokens'] / 1024:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("program", "store", "text", "held_out"):
        parser.add_argument(name)
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--experts", type=int, default=0)
    parser.add_argument("--io", default="direct")
    args = parser.parse_args()
    calibration(args)
    if args.experts > 0:
        held_out(args)


if __name__ == "__main__":
    main()
