#!/usr/bin/env python3
"""Decoding with drafts and without, in turns (A B A B …): prose, and text that repeats itself. Checks that both
write the same text. Prints a row for each text and budget: the median of the ratios of each pair, their
quartiles, and how many drafted tokens came true.

  bench/drafts.py build/sluice models/fable-moe-18m --memory 40MiB --memory 256MiB --pairs 15
"""
import argparse
import json
import statistics
import subprocess
import sys

PROSE = [
    "Once upon a time there was a little fox who lived at the edge of a dark forest.",
    "The old lighthouse keeper had not seen a ship for many days, and he began to wonder",
]
LINE = "The red fox ran to the river. The grey fox ran to the hill. The white fox ran to the wood. "
REPEATING = [LINE * 3, "one two three four five six seven eight nine ten. " * 6]


def run(args, memory, prompt, draft):
    command = [args.program, "run", args.model, "-p", prompt, "-n", str(args.tokens), "--memory", memory,
               "--ignore-eos", "--temp", "0", "--json", "--quiet", "--draft", draft, *args.more]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)


def seconds(result):
    return result["timing"]["decode_s"]


def compare(args, memory, kind, prompts):
    ratios, drafted, accepted, steps, speeds = [], 0, 0, 0, []
    for pair in range(args.pairs):
        prompt = prompts[pair % len(prompts)]
        order = ["none", "ngram"] if pair % 2 == 0 else ["ngram", "none"]
        results = {draft: run(args, memory, prompt, draft) for draft in order}
        if results["none"]["tokens"] != results["ngram"]["tokens"]:
            sys.exit(f"{kind}, {memory}: the text differs: {prompt!r}")
        ratios.append(seconds(results["none"]) / seconds(results["ngram"]))
        speeds.append(results["none"]["timing"]["decode_tok_s"])
        drafts = results["ngram"]["drafts"]
        drafted += drafts["draft_n"]
        accepted += drafts["draft_n_accepted"]
        steps += drafts["draft_steps"]
    low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    print(f"{kind:<10} {memory:>8}  {statistics.median(speeds):8.1f} tok/s without  x {middle:.3f} "
          f"({low:.3f} to {high:.3f}, {len(ratios)} pairs)  {drafted} drafted in {steps} steps, "
          f"{accepted} accepted", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--memory", action="append", required=True)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--prose", action="append", help="a file with a prompt, in place of the built-in ones")
    parser.add_argument("--repeating", action="append", help="likewise")
    parser.add_argument("more", nargs="*", help="flags for both, behind --")
    args = parser.parse_args()
    read = lambda files: [open(file, encoding="utf-8").read() for file in files]
    for memory in args.memory:
        compare(args, memory, "prose", read(args.prose) if args.prose else PROSE)
        compare(args, memory, "repeating", read(args.repeating) if args.repeating else REPEATING)


if __name__ == "__main__":
    main()
