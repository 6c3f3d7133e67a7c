#!/usr/bin/env python3
"""Sluice and Hugging Face accelerate's disk offload in alternating runs. See README.md beside this file."""
import argparse
import json
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time


def size(text):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(GiB|MiB|GB|MB)?", text)
    if not match:
        sys.exit(f"--memory: expected a size such as 8GB, found {text}")
    return int(float(match[1]) * {"GiB": 2**30, "MiB": 2**20, "GB": 10**9, "MB": 10**6, None: 1}[match[2]])


def run_sluice(options, math):
    command = [options.sluice, "run", options.store, "--tokens", options.tokens, "-n", str(options.n), "--memory", options.memory,
               "--temp", "0", "--ignore-eos", "--math", math, "--json"]
    if options.preset:
        command += ["--preset", options.preset]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {"tokens": result["tokens"], "tok_s": result["timing"]["decode_tok_s"], "first_s": result["timing"]["first_token_s"],
            "peak": result["memory"]["peak"]}


CHILD = "--as-accelerate"


def accelerate_child(options):
    """One run in a process of its own, so that its peak memory is its own."""
    start = time.monotonic()
    import torch
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    limit = size(options.memory) - size(options.overhead)
    with tempfile.TemporaryDirectory(dir=options.offload) as folder:
        model = AutoModelForCausalLM.from_pretrained(
            options.model, dtype=getattr(torch, options.arithmetic), device_map="auto", max_memory={"cpu": limit},
            offload_folder=folder, offload_state_dict=True)
        places = list(getattr(model, "hf_device_map", {}).values())
        tokens = torch.tensor([[int(t) for t in options.tokens.split(",")]])
        cache, ids, first_s, decode_start = None, [], None, None
        with torch.no_grad():
            for step in range(options.n):
                out = model(tokens, past_key_values=cache, use_cache=True)
                cache = out.past_key_values
                tokens = out.logits[:, -1:].argmax(-1)
                ids.append(int(tokens))
                if step == 0:
                    first_s, decode_start = time.monotonic() - start, time.monotonic()
        decode_s = time.monotonic() - decode_start
    print(json.dumps({"tokens": ids, "tok_s": (options.n - 1) / decode_s if options.n > 1 else 0, "first_s": first_s,
                      "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                      "on_disk": places.count("disk"), "modules": len(places)}))


def run_accelerate(options):
    done = subprocess.run([sys.executable, __file__, CHILD, *sys.argv[1:]], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr[-2000:])
    return json.loads(done.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="Hugging Face directory")
    parser.add_argument("--store", help="the same, packed; the directory itself if left out")
    parser.add_argument("--memory", required=True)
    parser.add_argument("--overhead", default="1GB")
    parser.add_argument("--tokens", default="1,2,3,4,5,6,7,8")
    parser.add_argument("-n", type=int, default=8)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--preset", default="")
    parser.add_argument("--arithmetic", default="bfloat16", choices=["bfloat16", "float32"])
    parser.add_argument("--offload", default=None, help="where accelerate puts its folder")
    parser.add_argument("--sluice", default="build/sluice")
    child = CHILD in sys.argv
    options = parser.parse_args([a for a in sys.argv[1:] if a != CHILD])
    options.store = options.store or options.model
    if child:
        return accelerate_child(options)

    runs = {"accelerate": [], "sluice": []}
    for turn in range(options.runs):
        runs["accelerate"].append(run_accelerate(options))
        runs["sluice"].append(run_sluice(options, "f32" if options.arithmetic == "float32" else "auto"))
        print(f"turn {turn + 1} of {options.runs} done", file=sys.stderr)
    print(f"{'':12} {'tok/s':>9} {'(least … most)':>20} {'first token':>12} {'peak':>10}")
    for name, results in runs.items():
        rates = [r["tok_s"] for r in results]
        spread = f"({min(rates):.3f} … {max(rates):.3f})"
        print(f"{name:12} {statistics.median(rates):9.3f} {spread:>20} {statistics.median(r['first_s'] for r in results):10.2f} s "
              f"{max(r['peak'] for r in results) / 2**30:6.2f} GiB")
    ratio = statistics.median(r["tok_s"] for r in runs["sluice"]) / statistics.median(r["tok_s"] for r in runs["accelerate"])
    same = all(r["tokens"] == runs["sluice"][0]["tokens"] for results in runs.values() for r in results)
    last = runs["accelerate"][-1]
    print(f"Sluice is {ratio:.1f}x as fast; tokens {'equal' if same else 'DIFFER'}; "
          f"accelerate had {last['on_disk']} of {last['modules']} modules on disk")


if __name__ == "__main__":
    main()
