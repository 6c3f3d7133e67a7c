#!/usr/bin/env python3
"""Runs the benchmark programs and prints their rows as one page, each beside the limit that was measured in the same minutes.

    tools/bench.py [--bin build/release/bin] [--only kernels,codec] [--model NAME.sluice --memory 8GB,none] [--all]

The page is also kept as bench/results/MACHINE-COMMIT.json. What lost more than its spread since the last result of the same machine is
listed at the end: shares of a limit are compared, so that a noisy minute, which hits both, does not count; times where there is none.
`make bench` calls this; MODEL= and MEMORY= add rows of `sluice run`.
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

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAMS = ["kernels", "codec", "disk", "decisions", "replay", "trace", "recover"]
FEATURES = ["avx2", "avx512f", "avx512bw", "avx512_vbmi2", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8", "asimd", "bf16"]


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


def machine_name(facts):
    best = [f for f in ("amx_bf16", "avx512_bf16", "avx512_vbmi2", "avx512f", "avx2", "asimd") if f in facts["features"]][:2]
    cpu = [f"family{facts['family']}", f"model{facts['model']}"] if facts["family"] else []
    return "-".join([platform.machine(), *cpu, *reversed(best), f"{facts['cores']}cores", f"{facts['memory_gib']}gib"]).replace("_", "")


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
        decode.update(bytes=active, limit="memory's read rate, every active weight once in BF16",
                      share=spread([active / s / limits["memory"] for s in per_token]))
    elif read > 0 and limits.get("disk"):
        decode.update(bytes=read, limit="fastest disk read", share=spread([read / s / limits["disk"] for s in per_token]))
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


def losses(old, new):
    """Rows whose spreads do not overlap, the new one on the worse side."""
    before = {(p["program"], r["name"]): r for p in old["programs"] for r in p["rows"]}
    for program in new["programs"]:
        for row in program["rows"]:
            was = before.get((program["program"], row["name"]))
            if was is None:
                continue
            if "share" in row and "share" in was and row["limit"] == was["limit"]:
                if row["share"]["high"] < was["share"]["low"]:
                    yield f"{program['program']}: {row['name']}: {was['share']['median']:.2f} → {row['share']['median']:.2f} of {row['limit']}"
            elif "share" not in row and "seconds" in row and "seconds" in was and row["seconds"]["low"] > was["seconds"]["high"]:
                yield f"{program['program']}: {row['name']}: {time_text(was['seconds'])} → {time_text(row['seconds'])}"
            elif "seconds" not in row:
                yield from (f"{program['program']}: {row['name']}: {was['figures'][key]:.4g} → {value:.4g} {key}"
                            for key, value in row.get("figures", {}).items()
                            if key in was.get("figures", {}) and value > was["figures"][key] * 1.001)


def last_result(folder, name):
    results = []
    for path in glob.glob(os.path.join(folder, "*.json")):
        result = json.load(open(path))
        if result["name"] == name:
            results.append((result["date"], path, result))
    return max(results, key=lambda r: r[0])[1:] if results else (None, None)


def write(path, result):
    """One row a line: a change shows as a line."""
    programs = ",\n".join('{"program": %s, "rows": [\n%s]}' % (json.dumps(p["program"]), ",\n".join(json.dumps(r) for r in p["rows"]))
                          for p in result["programs"])
    head = {key: value for key, value in result.items() if key != "programs"}
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".partial", "w") as file:
        file.write(json.dumps(head)[:-1] + ',\n"programs": [\n' + programs + "]}\n")
    os.rename(path + ".partial", path)


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
    old_path, old = last_result(options.results, result["name"])
    if old:
        lost = list(losses(old, result))
        print(f"\nsince {os.path.relpath(old_path, ROOT)} ({old['date']}): " +
              (f"{len(lost)} rows lost more than their spread" if lost else "no row lost more than its spread"))
        for text in lost:
            print(f"  {text}")
    else:
        print(f"\nno earlier result of a machine such as this one ({result['name']}) in {os.path.relpath(options.results, ROOT)}")
    if not options.only:
        path = os.path.join(options.results, f"{result['name']}-{result['commit']}.json")
        write(path, result)
        print(f"kept as {os.path.relpath(path, ROOT)}")


if __name__ == "__main__":
    main()
