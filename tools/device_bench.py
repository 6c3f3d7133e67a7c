#!/usr/bin/env python3
"""Ratios of policies on an emulated device, and its clock beside the modelled one, as rows of bench/results/emulated.csv.

    tools/device_bench.py PROGRAM assignment --routing FILE.mrt [--batch 16] [--steps 24] [--runs 5] [--device-cache NAME] [--presets cpu-moe,gpu-lru,…]
    tools/device_bench.py PROGRAM prefetch [--batch 1,8,16,32] [--steps 32] [--runs 5]
    tools/device_bench.py PROGRAM deciding --routing FILE [--batch 16] [--steps 24] [--runs 5] [--presets dali,dali-plus]
    tools/device_bench.py PROGRAM ladder [--batch 1,3] [--steps 32] [--runs 5] [--dilate 1]

assignment: six sparse layers of 64 experts (384 KiB each, top 6) that play the routing of DeepSeek-V2-Lite. The device takes 9 ms to
get an expert and .3 ms to compute it, the host 3 ms a token, and half of the experts have a slot.
prefetch: the bundled model (experts of 144 KiB), the same times. A residual is measured on the first half of its eval.txt; prompts are
of the second half.
deciding: the shape of Qwen1.5-MoE-A2.7B cut to four layers (5.5 GB are written), on a device that nothing paces: what share of a step
deciding takes. The host computes at its own speed.
ladder: SMoE's figure 16 with the bundled model, the same times and 31 % of the experts on the device, which are the ratios of its S3:
what is missing is loaded, or (host) the host computes it. All rungs but the first two are lossy, so texts differ.

All else is emulated: sleeping takes most of the time. Let nothing else run on the machine: the load before each turn and the
overruns are in the rows' notes, and rows with more than 1 % of overruns say so. `--dilate N` makes all emulated times N times as long, so
that a busy machine disturbs them less.
"""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile

import bench
import ledger

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LEDGER = os.path.join(ledger.RESULTS, "emulated.csv")
BUNDLED = os.path.join(ROOT, "models/fable-moe-18m")
ASSIGNMENT_DEVICE = "emulated:link=43.7MB/s,latency=0us,host=131MB/s,compute=1.31GB/s"
PREFETCH_DEVICE = "emulated:link=16.4MB/s,latency=0us,host=49.2MB/s,compute=492MB/s"
MOST_OVERRUNS = 0.01
SHAPE = {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_act": "silu", "rms_norm_eps": 1e-6,
         "vocab_size": 512, "hidden_size": 256, "head_dim": 64, "num_hidden_layers": 6, "num_attention_heads": 4,
         "num_key_value_heads": 2, "attention_bias": False, "intermediate_size": 256, "moe_intermediate_size": 256, "num_experts": 64,
         "num_experts_per_tok": 6, "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [], "rope_theta": 1e4,
         "rope_scaling": None, "max_position_embeddings": 4096, "tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2,
         "torch_dtype": "bfloat16"}
QWEN = {**SHAPE, "architectures": ["Qwen2MoeForCausalLM"], "model_type": "qwen2_moe", "vocab_size": 151936, "hidden_size": 2048,
        "head_dim": 128, "num_hidden_layers": 4, "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 5632,
        "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632, "num_experts": 60, "num_experts_per_tok": 4,
        "norm_topk_prob": False, "use_sliding_window": False, "rope_theta": 1e6, "tie_word_embeddings": False}
UNPACED_DEVICE = "emulated:link=inf,compute=inf,latency=0us"
BASELINES = ["cpu-moe", "gpu-lru", "ncmoe"]  # all on the host, all on the device, whole layers on either


def sluice(program, *words):
    done = subprocess.run([program, *map(str, words), "--json", "--quiet"], check=False, stdout=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(f"device_bench.py: sluice {' '.join(map(str, words))} ended with {done.returncode}")
    return json.loads(done.stdout) if done.stdout else {}


def spread(values):
    return {"median": statistics.median(values), "low": min(values), "high": max(values), "rounds": len(values)}


def note_of(load, overruns, dilated=1):
    invalid = "" if overruns <= MOST_OVERRUNS else "; NOT VALID"
    return f"emulated, dilated x{dilated}; load {load:.1f}; overruns {100 * overruns:.2f} %{invalid}"


def compared_rows(result, case, load):
    """Rows of `compare --json`: each preset's experts and its two clocks, and how much faster than the best baseline it is."""
    presets = {it["preset"]: it for it in result["presets"]}
    best = min((presets[name]["device"]["moe_s"]["median"] for name in BASELINES if name in presets), default=None)
    rows = []
    for name, it in presets.items():
        note = note_of(load, it["device"]["overrun_share"]["high"])
        head = {"case": f"{case}; {name}", "rounds": it["runs"], "note": note, "checked": "yes" if result["texts_equal"] else "no"}
        rows.append({**head, **{key: it["device"]["moe_s"][key] for key in ("median", "low", "high")}, "measure": "s of experts a step"})
        rows.append({**head, **{key: it["tpot_s"][key] for key in ("median", "low", "high")}, "measure": "s a step"})
        rows.append({**head, **{key: it["device"]["predicted_over_measured"][key] for key in ("median", "low", "high")},
                     "measure": "step, predicted by measured" + ("" if result["device"]["same_ranking"] else "; OTHER ranking")})
        if best is not None:
            rows.append({**head, "measure": "experts, x the best of host, device and whole layers",
                         "median": best / it["device"]["moe_s"]["median"]})
    return rows


def assignment(args, work):
    model, rows = made(args.program, SHAPE, work), []
    for batch in args.batch:
        load = os.getloadavg()[0]
        result = sluice(args.program, "compare", model, "--preset", args.presets, "--prefetch", "none", "--device", ASSIGNMENT_DEVICE,
                        "--device-slots", 32, "--router", "recorded", "--routing", args.routing, "--routing-layers", "1,6,11,16,21,25",
                        *(["--device-cache", args.device_cache] if args.device_cache else []),
                        "--tokens", ",".join(str(i + 1) for i in range(args.prompt)), "--batch", batch, "-n", args.steps + 1, "--runs", args.runs, "--threads", 1, "--memory", "1GiB")
        cache = f"; cache {args.device_cache}" if args.device_cache else ""
        rows += compared_rows(result, f"6 layers of 64 experts; {os.path.basename(args.routing)}; 32 slots{cache}; B = {batch}", load)
    return rows


def made(program, shape, work):
    config, model = os.path.join(work, "config.json"), os.path.join(work, "model")
    with open(config, "w", encoding="utf-8") as file:
        json.dump(shape, file)
    subprocess.run([program, "synth", config, "-o", model, "--quiet"], check=True)
    return model


def deciding_rows(counts, steps, case, load):
    """`counts`: of the decode steps of each run, as `run --json` has them."""
    head = {"case": case, "rounds": len(counts), "checked": "yes", "note": f"nothing is paced; load {load:.1f}"}
    return [{**head, **spread([it["policy_s"] / steps for it in counts]), "measure": "s of deciding a step"},
            {**head, **spread([it["policy_s"] / it["seconds"] for it in counts]), "measure": "share of a step that deciding takes"}]


def deciding(args, work):
    model, rows = made(args.program, QWEN, work), []
    for batch in args.batch:
        prompts = [word for i in range(batch) for word in ("--tokens", f"{i + 1},{i + 2}")]
        for preset in args.presets.split(","):
            load = os.getloadavg()[0]
            counts = [sluice(args.program, "run", model, *prompts, "-n", args.steps + 1, "--ignore-eos", "--threads", 2, "--preset", preset,
                             "--prefetch", "none", "--device", UNPACED_DEVICE, "--device-slots", 15, "--memory", "8GiB",
                             "--router", "recorded", "--routing", args.routing)["experts"]["decode"] for _ in range(args.runs)]
            case = f"Qwen1.5-MoE-A2.7B, 4 layers; {os.path.basename(args.routing)}; 15 slots; B = {batch}; {preset}"
            rows += deciding_rows(counts, args.steps, case, load)
    return rows


def half_texts():
    with open(os.path.join(BUNDLED, "eval.txt"), encoding="utf-8") as file:
        text = file.read()
    return text[:len(text) // 2], text[len(text) // 2:]


def prefetch_rows(runs, case, load):
    """`runs`: of each prefetch, the JSON of `run` in each turn."""
    step = {name: [run["placement"]["decode"]["tpot_s"] for run in all_runs] for name, all_runs in runs.items()}
    rows = []
    for name, all_runs in runs.items():
        ahead = [run["experts"]["device"]["prefetch"] for run in all_runs]
        head = {"case": f"{case}; {name}", "rounds": len(all_runs), "checked": "yes",
                "note": note_of(load, max(run["device"]["overrun_share"] for run in all_runs))}
        rows.append({**head, **spread(step[name]), "measure": "s a step"})
        if name == "none":
            continue
        rows.append({**head, **spread([a / b for a, b in zip(step[name], step["none"])]), "measure": "s a step, x without prefetch"})
        for measure, part, whole in (("share of layers that may prefetch", lambda it: it["asked"] - it["paused"], "asked"),
                                     ("share of prefetched experts computed", lambda it: it["used"], "sent"),
                                     ("share of prefetched experts in vain", lambda it: it["wasted"], "sent")):
            rows.append({**head, **spread([part(it) / max(1, it[whole]) for it in ahead]), "measure": measure})
    return rows


def prefetch(args, work):
    known, held_out = half_texts()
    text, residual, profile = (os.path.join(work, name) for name in ("known.txt", "residual.bin", "profile.json"))
    with open(text, "w", encoding="utf-8") as file:
        file.write(known)
    subprocess.run([args.program, "calibrate", BUNDLED, "--residual", "-f", text, "-o", residual, "--quiet"], check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run([args.program, "profile", BUNDLED, "--device", PREFETCH_DEVICE, "--threads", "1", "-o", profile, "--quiet"], check=True)
    rows = []
    for batch in args.batch:
        each = len(held_out) // batch
        prompts = [word for i in range(batch) for word in ("-p", held_out[i * each:i * each + 40])]
        runs, load = {name: [] for name in ["none", *args.prefetch.split(",")]}, os.getloadavg()[0]
        for _ in range(args.runs):
            for name, done in runs.items():
                done.append(sluice(args.program, "run", BUNDLED, *prompts, "-n", args.steps + 1, "--temp", 0, "--ignore-eos", "--threads", 1,
                                   "--memory", "256MiB", "--device", PREFETCH_DEVICE, "--profile", profile, "--device-slots", args.slots,
                                   "--device-cache", "workload-ema", "--placement", "ratio-prefix", "--prefetch", name,
                                   *(["--residual", residual] if name == "dali-residual" else [])))
        texts = {json.dumps([it["tokens"] for it in run.get("sequences", [run])]) for all_runs in runs.values() for run in all_runs}
        if len(texts) != 1:
            sys.exit(f"device_bench.py: B = {batch}: prefetches changed the text, which must never be")
        rows += prefetch_rows(runs, f"bundled model, held-out prompts; {args.slots} slots; B = {batch}", load)
    return rows


LADDER = ["s-base", "s-ce", "s-er", "s-pre", "smoe"]


def ladder_rows(results, case, load, dilated=1):
    """`results`: of each reading, the JSON of `compare`. Shares are of the base of the same reading."""
    rows = []
    for reading, result in results.items():
        presets = {it["preset"]: it for it in result["presets"]}
        for name, it in presets.items():
            head = {"case": f"{case}; {reading}; {name}", "rounds": it["runs"], "checked": "yes" if it["same_tokens"] else "no",
                    "note": note_of(load, it["device"]["overrun_share"]["high"], dilated)}
            rows.append({**head, **{key: it["tpot_s"][key] for key in ("median", "low", "high")}, "measure": "s a step"})
            rows.append({**head, "measure": "s a step, x the base", "median": it["tpot_s"]["median"] / presets["s-base"]["tpot_s"]["median"]})
            rows.append({**head, **{key: it["device"]["predicted_over_measured"][key] for key in ("median", "low", "high")},
                         "measure": "step, predicted by measured"})
    return rows


def ladder(args, work):
    _, held_out = half_texts()
    profile, device = os.path.join(work, "profile.json"), f"{PREFETCH_DEVICE},dilate={args.dilate}"
    subprocess.run([args.program, "profile", BUNDLED, "--device", device, "--threads", "1", "-o", profile, "--quiet"], check=True)
    rows = []
    for batch in args.batch:
        each = len(held_out) // batch
        prompts = [word for i in range(batch) for word in ("-p", held_out[i * each:i * each + 40])]
        common = ["compare", BUNDLED, *prompts, "-n", args.steps + 1, "--runs", args.runs, "--threads", 1, "--memory", "256MiB",
                  "--device", device, "--profile", profile, "--device-slots", args.slots]
        load = os.getloadavg()[0]
        results = {"loaded": sluice(args.program, *common, "--preset", ",".join(LADDER)),
                   "host": sluice(args.program, *common, "--preset", ",".join(LADDER[:-1]), "--placement", "layer-split",
                                  "--placement-prefill", "device")}
        results["host"]["presets"].append(next(it for it in results["loaded"]["presets"] if it["preset"] == LADDER[-1]))
        rows += ladder_rows(results, f"bundled model, held-out prompts; {args.slots} slots; B = {batch}", load, args.dilate)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    kinds = parser.add_subparsers(dest="kind", required=True)
    for name, batch, steps in (("assignment", "16", 24), ("prefetch", "1,8,16,32", 32), ("deciding", "16", 24),
                               ("ladder", "1,3", 32)):
        kind = kinds.add_parser(name)
        kind.add_argument("--batch", type=lambda text: [int(part) for part in text.split(",")], default=batch)
        kind.add_argument("--steps", type=int, default=steps)
        kind.add_argument("--runs", type=int, default=5)
        kind.add_argument("--ledger", default=LEDGER)
        if name == "assignment":
            kind.add_argument("--routing", required=True)
            kind.add_argument("--prompt", type=int, default=24, help="tokens that come before, so that the host has most experts")
            kind.add_argument("--device-cache", default="", help="of all presets; default: each preset's own")
            kind.add_argument("--presets", default=",".join([*BASELINES, "dali", "dali-plus"]))
        elif name == "deciding":
            kind.add_argument("--routing", required=True)
            kind.add_argument("--presets", default="dali,dali-plus")
        elif name == "ladder":
            kind.add_argument("--slots", type=int, default=10)
            kind.add_argument("--dilate", type=int, default=1)
        else:
            kind.add_argument("--prefetch", default="dali-residual,raw,stream")
            kind.add_argument("--slots", type=int, default=16)
    args = parser.parse_args()
    args.program = os.path.abspath(args.program)
    facts = bench.machine()
    head = {"date": datetime.datetime.now().isoformat(timespec="seconds"), "commit": bench.commit(), "machine": bench.machine_name(facts),
            "command": "device_bench.py " + " ".join(os.path.basename(word) for word in sys.argv[2:])}
    with tempfile.TemporaryDirectory() as work:
        rows = {"assignment": assignment, "prefetch": prefetch, "deciding": deciding, "ladder": ladder}[args.kind](args, work)
    ledger.append(args.ledger, [{**head, **row} for row in rows])
    for row in rows:
        print(f"{row['case']:<80} {row['measure']:<52} {row['median']:.4g} ({row.get('low', row['median']):.4g}-"
              f"{row.get('high', row['median']):.4g}) {row['note']}")


if __name__ == "__main__":
    main()
