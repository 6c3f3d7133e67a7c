#!/usr/bin/env python3
"""Runs the benchmark programs and prints their rows as one page, each beside the limit that was measured in the same minutes.

    tools/bench.py [--bin build/release/bin] [--only kernels,codec] [--model NAME.sluice --memory 8GB,none] [--all]

The rows are appended to the machine's ledger, bench/results/MACHINE.csv (bench/results/README.md has its columns). What lost more than
its spread since the last run on the same machine is listed at the end: shares of a limit are compared, so that a noisy minute, which
hits both, does not count; times where there is none. `make bench` calls this; MODEL= and MEMORY= add rows of `sluice run`.
"""
import argparse
import datetime
import glob
import json
import mmap
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import ledger

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAMS = ["kernels", "blocks", "codec", "disk", "decisions", "replay", "trace", "recover"]
FEATURES = ["avx2", "avx512f", "avx512bw", "avx512_vbmi2", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8", "asimd", "bf16"]
# Programs that compare what they compute with a known answer in the same run, and fail where it is wrong.
CHECKED = {"kernels", "blocks", "codec", "disk", "decisions", "replay", "recover", "run"}
# (vendor's family, first model, last model): the generation of the CPU.
GENERATIONS = {"Zen 3": [(25, 0x00, 0x0f), (25, 0x20, 0x5f)], "Zen 4": [(25, 0x10, 0x1f), (25, 0x60, 0x7f), (25, 0xa0, 0xaf)],
               "Zen 5": [(26, 0x00, 0x7f)], "Ice Lake": [(6, 0x6a, 0x6a), (6, 0x6c, 0x6c)], "Sapphire Rapids": [(6, 0x8f, 0x8f)],
               "Emerald Rapids": [(6, 0xcf, 0xcf)], "Granite Rapids": [(6, 0xad, 0xae)]}
FEATURE_TITLES = {"amx_bf16": "AMX", "avx512_bf16": "AVX-512 with BF16", "avx512_vbmi2": "AVX-512 with VBMI2", "avx512f": "AVX-512",
                  "avx2": "AVX2", "asimd": "NEON"}


def fail(message):
    sys.exit(f"bench.py: {message}")


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False).stdout.strip()


def machine():
    """What figures depend on, and nothing that names a particular host."""
    info, memory = {}, 0
    with open("/proc/cpuinfo") as lines:
        for line in lines:
            key, _, value = line.partition(":")
            info.setdefault(key.strip(), value.strip())
    with open("/proc/meminfo") as lines:
        memory = int(next(line for line in lines if line.startswith("MemTotal")).split()[1]) * 1024
    flags = (info.get("flags") or info.get("Features") or "").split()
    return {"cpu": info.get("model name", platform.machine()), "family": info.get("cpu family", ""), "model": info.get("model", ""),
            "features": [f for f in FEATURES if f in flags], "cores": len(os.sched_getaffinity(0)),
            "memory_gib": round(memory / 2**30), "kernel": platform.release()}


def generation(facts):
    """What kind of CPU it is; its numbers where this list does not know it."""
    if not facts["family"]:
        return platform.machine()
    family, model = int(facts["family"]), int(facts["model"])
    for name, ranges in GENERATIONS.items():
        if any(family == f and first <= model <= last for f, first, last in ranges):
            return name
    return f"family {family} model {model}"


def best_feature(facts):
    return next((f for f in FEATURE_TITLES if f in facts["features"]), "")


def machine_name(facts):
    """The name of the machine's ledger: zen4-avx512bf16-2cores-24gib."""
    words = [generation(facts), best_feature(facts) or "baseline", f"{facts['cores']}cores", f"{facts['memory_gib']}gib"]
    return "-".join(word.lower().replace(" ", "").replace("_", "") for word in words)


def machine_row(facts):
    """The machine's row of machines.csv."""
    title = ", ".join([generation(facts), f"{facts['cores']} cores", FEATURE_TITLES.get(best_feature(facts), "baseline")])
    return {"machine": machine_name(facts), "title": title, "features": " ".join(facts["features"]),
            **{key: facts[key] for key in ("cpu", "family", "model", "cores", "memory_gib", "kernel")}}


def commit():
    """The commit, with "-changed" where the tree differs from it (results aside)."""
    name = output_of("git", "rev-parse", "--short=10", "HEAD") or "unknown"
    changed = [line for line in output_of("git", "status", "--porcelain").splitlines() if "bench/results/" not in line]
    return name + ("-changed" if changed else "")


def run_program(path, extra):
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "rows.json")
        done = subprocess.run([path, "--json", file, *extra], capture_output=True, text=True)
        if done.returncode != 0:
            fail(f"{path} failed with exit code {done.returncode}:\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
        return json.load(open(file))["rows"]


def spread(values):
    ordered = sorted(values)
    return {"median": statistics.median(ordered), "low": ordered[0], "high": ordered[-1]}


def direct_rate(model):
    """Bytes a second of direct reads of the model's own files: random runs of 8 MiB, 8 reads at a time, the faster of 1 and 4 MiB each."""
    rates = [rate for rate in (rate_of_reads(model, mib << 20) for mib in (1, 4)) if rate]
    return max(rates, default=None)


def rate_of_reads(model, unit, seconds=0.5):
    run = 8 << 20
    files = [path for path in glob.glob(os.path.join(model, "**"), recursive=True) if os.path.isfile(path) and os.path.getsize(path) >= run]
    if not files:
        return None
    draw, done, end = random.Random(2), [], time.monotonic() + seconds
    starts = [(path, draw.randrange((os.path.getsize(path) - run) // unit + 1) * unit) for path in draw.choices(files, k=20000)]

    def read():
        buffer = mmap.mmap(-1, unit)
        while starts and time.monotonic() < end:
            path, start = starts.pop()
            handle = os.open(path, os.O_RDONLY | os.O_DIRECT)
            try:
                for at in range(start, start + run, unit):
                    done.append(os.preadv(handle, [buffer], at))
            finally:
                os.close(handle)

    threads = [threading.Thread(target=read) for _ in range(8)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.monotonic() - begin)


def disk_rows(name, results, rates):
    """How much of the disk's own rate, measured before and after each run, decoding used."""
    rows = []
    for what, bytes_of, time_of in (("while waited for", lambda d: d["demand_arrived_bytes"], lambda d: d["demand_s"]),
                                    ("over whole tokens", lambda d: d["bytes_read"] + d["prefetch_bytes"], lambda d: d["seconds"])):
        decode = [r["experts"]["decode"] for r in results]
        rows.append({"name": f"disk {what}: {name}", "rounds": len(results), "bytes": statistics.median(bytes_of(d) for d in decode),
                     "seconds": spread([time_of(d) for d in decode]), "limit": "direct reads of the same file",
                     "limit_rate": statistics.median(rates),
                     "share": spread([bytes_of(d) / time_of(d) / rate for d, rate in zip(decode, rates)])})
    return rows


def end_to_end(sluice, model, memory, predict, runs, limits):
    """Rows of `sluice run`: a prompt of 64 tokens, and decoding, held against the disk, or against memory where nothing is read."""
    draw = random.Random(1)
    tokens = ",".join(str(draw.randrange(1000)) for _ in range(64))
    command = [sluice, "run", model, "--tokens", tokens, "-n", str(predict), "--temp", "0", "--ignore-eos", "--json", "-q"]
    if memory != "none":
        command += ["--memory", memory]
    results, rates = [], [direct_rate(model)]
    for _ in range(runs):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            fail(f"{' '.join(command[:3])} failed: {done.stderr[-1000:]}")
        results.append(json.loads(done.stdout))
        rates.append(direct_rate(model))
    if any(r["tokens"] != results[0]["tokens"] for r in results):
        fail(f"{' '.join(command[:3])} gave other tokens in one run than in another: {' '.join(command)}")
    name = os.path.basename(model.rstrip("/")) + (f", {memory}" if memory != "none" else ", no limit")
    prefill = [r["timing"]["prefill_s"] for r in results]
    per_token = [r["timing"]["decode_s"] / (predict - 1) for r in results]
    read = statistics.median(r["experts"]["decode"]["bytes_read"] + r["experts"]["decode"]["prefetch_bytes"] for r in results) / (predict - 1)
    deciding = statistics.median(100 * r["experts"]["decode"]["policy_s"] / r["experts"]["decode"]["seconds"] for r in results)
    decode = {"name": f"decode: {name}", "rounds": runs, "seconds": spread(per_token),
              "figures": {"tok/s": 1 / statistics.median(per_token), "MB read a token": read * 1e-6, "% of it decides": deciding}}
    inspected = subprocess.run([sluice, "inspect", model, "--json", "-q"], check=True, capture_output=True).stdout
    active = 2.0 * json.loads(inspected)["parameters"]["active"]
    if read < 0.05 * active and limits.get("memory"):
        decode.update(bytes=active, limit="memory's read rate, every active weight once in BF16", limit_rate=limits["memory"],
                      share=spread([active / s / limits["memory"] for s in per_token]))
    elif read > 0 and limits.get("disk"):
        decode.update(bytes=read, limit="fastest disk read", limit_rate=limits["disk"], share=spread([read / s / limits["disk"] for s in per_token]))
    rows = [{"name": f"prefill of 64: {name}", "rounds": runs, "seconds": spread(prefill),
             "figures": {"tok/s": 64 / statistics.median(prefill)}}, decode]
    if all(rates) and all(r["experts"]["decode"]["demand_s"] > 0 for r in results):
        rows += disk_rows(name, results, [(before + after) / 2 for before, after in zip(rates, rates[1:])])
    return rows


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def time_text(seconds):
    for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9)):
        if seconds["median"] * factor >= 1 or unit == "ns":
            return f"{seconds['median'] * factor:.3g} {unit} ({seconds['low'] * factor:.3g} … {seconds['high'] * factor:.3g})"


def line_of(row):
    seconds, share = row.get("seconds"), row.get("share")
    rate = ""
    if seconds and row.get("bytes") and not row.get("limit", "").startswith("FMA"):
        rate = f"{row['bytes'] / seconds['median'] * 1e-9:.2f} GB/s"
    elif seconds and row.get("flops"):
        rate = f"{row['flops'] / seconds['median'] * 1e-9:.0f} GFLOP/s"
    of = f"{share['median']:.2f} ({share['low']:.2f} … {share['high']:.2f}) of {row['limit']}" if share else ""
    more = ", ".join(f"{value:.3g} {name}" for name, value in row.get("figures", {}).items())
    return f"  {' '.join(row['name'].split()):<48} {time_text(seconds) if seconds else '':<28} {rate:>13}  {'; '.join(t for t in (of, more) if t)}"


def print_page(result, everything):
    facts = result["machine"]
    print(f"{facts['cpu']} ({', '.join(facts['features'])}), {facts['cores']} cores, {facts['memory_gib']} GiB, Linux {facts['kernel']}")
    rates = [f"{kind} {facts[key]} GB/s" for kind, key in (("disk", "disk_gb_s"), ("memory", "memory_gb_s")) if key in facts]
    print(f"{', '.join(rates)}{'; ' if rates else ''}commit {result['commit']}; {result['date']}; load {result['load']:.1f}")
    if result["load"] > 0.5:
        print("the machine was not quiet when this began: compare shares, not times")
    for program in result["programs"]:
        rows = [row for row in program["rows"] if everything or not row.get("detail")]
        if rows:
            print(f"{program['program']}: median (least … most), rate, share of the limit of the same rounds (quartiles)")
        for row in rows:
            print(line_of(row))


def rate_of(row):
    """Bytes a second by the median round, or operations where a row is held against those. None where neither is counted."""
    amount = row.get("flops") if row.get("limit", "").startswith("FMA") or not row.get("bytes") else row["bytes"]
    return amount / row["seconds"]["median"] if amount and row.get("seconds") else None


def limit_rate(row, rows):
    """The rate of what a row is held against, by the median of its rounds; None where it has no row of its own."""
    limit = row.get("limit", "")
    if "limit_rate" in row:
        return row["limit_rate"]
    if limit == "fastest read of the round":
        return max(filter(None, map(rate_of, rows)))
    if limit.startswith("read, "):  # of several ways of reading, with as many threads
        return max((rate_of(r) for r in rows if r["name"].startswith("read, ") and r["name"].endswith(limit[-3:])), default=None)
    return next((rate_of(r) for r in rows if limit and r["name"] == limit), None)


def ledger_rows(result):
    """The rows of a run as its ledger keeps them: one for the time of a case, one for each other figure."""
    for program in result["programs"]:
        name = program["program"]
        head = {"date": result["date"], "commit": result["commit"], "machine": result["name"], "command": f"make bench, {name}",
                "checked": "yes" if name in CHECKED else None}
        for row in program["rows"]:
            case = {**head, "case": " ".join(row["name"].split()), "rounds": row.get("rounds")}
            note = f"load {result['load']:.1f}" if result["load"] > 0.5 else None
            if "seconds" in row:
                times, share = row["seconds"], row.get("share", {})
                rate = {key: row[amount] / times["median"] * 1e-9 for key, amount in (("gb_s", "bytes"), ("gflop_s", "flops")) if row.get(amount)}
                limit = limit_rate(row, program["rows"])
                yield {**case, "measure": "s", **times, "bytes": row.get("bytes"), **rate, "limit": row.get("limit"),
                       "limit_rate": limit and limit * 1e-9, "share": share.get("median"), "share_low": share.get("low"),
                       "share_high": share.get("high"), "note": note}
            for measure, value in row.get("figures", {}).items():
                yield {**case, "measure": measure, "median": value, "note": note}


def losses(old, new):
    """Rows whose spreads do not overlap, the new one on the worse side. Both are rows of a ledger."""
    before = {(row["command"], row["case"], row["measure"]): row for row in old}
    timed = {(row["command"], row["case"]) for row in new if row["measure"] == "s"}
    for row in new:
        was = before.get((row["command"], row["case"], row["measure"]))
        if was is None:
            continue
        what = f"{row['command'].removeprefix('make bench, ')}: {row['case']}"
        if row["measure"] != "s":
            if (row["command"], row["case"]) not in timed and row["median"] > was["median"] * 1.001:
                yield f"{what}: {was['median']:.4g} → {row['median']:.4g} {row['measure']}"
        elif row.get("share") is not None and was["share"] is not None and row["limit"] == was["limit"]:
            if row["share_high"] < was["share_low"]:
                yield f"{what}: {was['share']:.2f} → {row['share']:.2f} of {row['limit']}"
        elif row.get("share") is None and row["low"] > was["high"]:
            yield f"{what}: {time_text(was)} → {time_text(row)}"


def last_run(path):
    """The rows of the latest run of `make bench` in a ledger, and its date; ([], None) where there is none. Rows without a time of day were
    copied from pages, and are no run."""
    rows = ledger.read(path) if os.path.exists(path) else []
    rows = [row for row in rows if row["command"].startswith("make bench") and "T" in (row["date"] or "")]
    date = max((row["date"] for row in rows), default=None)
    return [row for row in rows if row["date"] == date], date


def keep(folder, facts, rows):
    """Appends to the machine's ledger, and to machines.csv if the machine is new. The ledger's path. Runs of a tree that differs from its
    commit go to a file of their own, which git ignores."""
    changed = rows[0]["commit"].endswith("-changed")
    path, machines = os.path.join(folder, f"{machine_name(facts)}{'-changed' if changed else ''}.csv"), os.path.join(folder, "machines.csv")
    known = ledger.read(machines, ledger.MACHINE_COLUMNS) if os.path.exists(machines) else []
    ledger.append(path, rows)
    if not changed and all(row["machine"] != machine_name(facts) for row in known):
        ledger.append(machines, [machine_row(facts)], ledger.MACHINE_COLUMNS)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "build/release/bin"))
    parser.add_argument("--sluice", default=os.path.join(ROOT, "build/sluice"))
    parser.add_argument("--only", default="", help=f"of {','.join(PROGRAMS)}; then nothing is kept")
    parser.add_argument("--model", default="", help="a store or directory for rows of whole runs")
    parser.add_argument("--memory", default="none", help="budgets of those runs: 8GB,none")
    parser.add_argument("--predict", type=int, default=32)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--dir", default=os.path.join(ROOT, "build"), help="where disk reads are measured")
    parser.add_argument("--results", default=os.path.join(ROOT, "bench/results"))
    parser.add_argument("--all", action="store_true", help="details, too: every instruction set and number of threads")
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else PROGRAMS
    for name in chosen:
        if name not in PROGRAMS:
            fail(f"--only: expected some of {','.join(PROGRAMS)}, found {name}")
        if not os.access(os.path.join(options.bin, f"sluice_bench_{name}"), os.X_OK):
            fail(f"{options.bin}/sluice_bench_{name}: not there; build it: make bench, or give --bin")

    facts = machine()
    result = {"name": machine_name(facts), "commit": commit(), "date": datetime.datetime.now().isoformat(timespec="seconds"),
              "load": round(os.getloadavg()[0], 2), "machine": facts, "programs": []}
    extra = {"disk": ["--dir", options.dir, "--size", "512MiB"],
             "trace": ["--model", os.path.join(ROOT, "models/fable-moe-18m"), "--out", os.path.join(options.dir, f"bench.{os.getpid()}.trace")]}
    limits = {}
    for name in chosen:
        started = time.monotonic()
        rows = run_program(os.path.join(options.bin, f"sluice_bench_{name}"), extra.get(name, []))
        result["programs"].append({"program": name, "rows": rounded(rows)})
        if name == "disk":
            limits["disk"] = max(row["bytes"] / row["seconds"]["median"] for row in rows)
            facts["disk_gb_s"] = round(limits["disk"] * 1e-9, 3)
        if name == "kernels":
            limits["memory"] = max(row["bytes"] / row["seconds"]["median"] for row in rows if row["name"].startswith("read, "))
            facts["memory_gb_s"] = round(limits["memory"] * 1e-9, 1)
        if sys.stderr.isatty():
            print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr)
    if options.model:
        rows = [row for memory in options.memory.split(",")
                for row in end_to_end(options.sluice, options.model, memory, options.predict, options.runs, limits)]
        result["programs"].append({"program": "run", "rows": rounded(rows)})

    print_page(result, options.all)
    path = os.path.join(options.results, f"{result['name']}.csv")
    rows = list(ledger_rows(result))
    old, date = last_run(path)
    if old:
        lost = list(losses(old, rows))
        print(f"\nsince the run of {date} in {os.path.relpath(path, ROOT)}: " +
              (f"{len(lost)} rows lost more than their spread" if lost else "no row lost more than its spread"))
        for text in lost:
            print(f"  {text}")
    else:
        print(f"\nno earlier run of a machine such as this one in {os.path.relpath(path, ROOT)}")
    if not options.only:
        print(f"kept in {os.path.relpath(keep(options.results, facts, rows), ROOT)}")


if __name__ == "__main__":
    main()
