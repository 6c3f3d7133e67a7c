#!/usr/bin/env python3
"""What recording costs: `sluice run` and `sluice trace` in turn, the same prompt, tokens, budget for experts and threads.

Prints medians of the time of prefill and decode, of the CPU time of the whole process, and of the ratios of neighbours.
Usage: tools/measure_trace_cost.py [--program build/sluice] [--model DIR] [--rounds 15] [--tokens 400] [--memory 64MiB]
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile


def once(command):
    before = os.times()
    result = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return result["timing"]["prefill_s"] + result["timing"]["decode_s"], cpu, result["tokens"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="build/sluice")
    parser.add_argument("--model", default="models/fable-moe-18m")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--memory", type=int, default=64, help="MiB for `run`; `trace` gets the 2 MiB more that recording takes")
    args = parser.parse_args()
    common = ["-p", "Once upon a time", "-n", str(args.tokens), "--temp", "0", "--ignore-eos", "--json"]
    times = {"run": [], "trace": []}
    cpus = {"run": [], "trace": []}
    with tempfile.TemporaryDirectory(dir=".") as directory:
        trace = os.path.join(directory, "cost.trace")
        for round_number in range(args.rounds + 1):
            # Whoever comes second finds the machine as the first left it: take turns at being first.
            order = ["run", "trace"] if round_number % 2 == 0 else ["trace", "run"]
            tokens = {}
            for name in order:
                extra = ["--memory", f"{args.memory + 2}MiB", "-o", trace] if name == "trace" else ["--memory", f"{args.memory}MiB"]
                seconds, cpu, tokens[name] = once([args.program, name, args.model, *common, *extra])
                if round_number > 0:
                    times[name].append(seconds)
                    cpus[name].append(cpu)
            assert tokens["run"] == tokens["trace"]
            size = os.path.getsize(trace)
            os.remove(trace)
    for label, values in (("prefill + decode, s", times), ("CPU of the process, s", cpus)):
        ratio = statistics.median(t / r for t, r in zip(values["trace"], values["run"]))
        print(f"{label:22}  run {statistics.median(values['run']):.4f} ({min(values['run']):.4f} … {max(values['run']):.4f})"
              f"  trace {statistics.median(values['trace']):.4f} ({min(values['trace']):.4f} … {max(values['trace']):.4f})"
              f"  median of ratios {100 * (ratio - 1):+.2f} %, of medians "
              f"{100 * (statistics.median(values['trace']) / statistics.median(values['run']) - 1):+.2f} %, of the fastest "
              f"{100 * (min(values['trace']) / min(values['run']) - 1):+.2f} %")
    print(f"{size} bytes of trace, {size / args.tokens:.0f} a token")


if __name__ == "__main__":
    main()
