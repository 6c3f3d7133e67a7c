#!/usr/bin/env python3
"""llama.cpp, Sluice and, if asked for, an engine that reads experts itself, on the same weights and tokens, in alternating runs under the
same limits of memory. See README.md beside this file."""
import argparse
import datetime
import json
import os
import random
import signal
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.append(os.path.join(ROOT, "tools"))

import bench  # noqa: E402
import bound  # noqa: E402
import ledger  # noqa: E402
import machine  # noqa: E402
import streaming  # noqa: E402
from contents import contents, kept_always  # noqa: E402
from group import MemoryGroup, Watched  # noqa: E402

GB = 10**9
CACHE = os.environ.get("SLUICE_PEERS", os.path.expanduser("~/.cache/sluice-peers"))
SHORT_PROMPT = "1,2,3,4,5,6,7,8"  # of runs that find settings
MEASURES = {"load s": ("load_s", 1), "first token s": ("first_token_s", 1),
            "decode tok/s": ("decode_tok_s", 1), "MB read a token": ("read_bytes_per_token", 1e-6),
            "CPU s a token": ("cpu_s_per_token", 1), "peak GiB": ("peak", 2**-30)}


def size(text):
    return None if text == "none" else int(float(text.removesuffix("GB")) * GB)


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gguf", required=True)
    parser.add_argument("--store", required=True, help="what Sluice runs: the same weights packed, NAME.sluice, or the GGUF file itself")
    parser.add_argument("--memory", default="8GB,12GB,16GB,none", help="limits of the cgroups, in GB; none: no limit")
    parser.add_argument("--headroom", default="0.1GB", help="of a limit, what --memory of Sluice leaves to the kernel's own pages")
    parser.add_argument("--prompt", type=int, default=512, help="tokens, drawn at random")
    parser.add_argument("-n", type=int, default=32, help="tokens to generate")
    parser.add_argument("--runs", type=int, default=2, help="turns; in each, every row runs once")
    parser.add_argument("--seconds", type=float, default=60, help="llama.cpp begins no further token after as many of decoding")
    parser.add_argument("--read-ahead", default="found,128", help="of the disk, in KiB, for llama.cpp (Sluice reads directly)")
    parser.add_argument("--cache", default="cold,warm", help="cold: nothing of the files in the page cache; warm: right after a cold run")
    parser.add_argument("--settings", default="", help="of llama.cpp: LOAD,THREADS such as mmap,2; default: what short runs find best")
    parser.add_argument("--first-token", type=int, default=0, help="also a cold start with as many ids, up to the first token")
    parser.add_argument("--streaming", default="", help="runner of an engine that reads experts itself (../bigmoe): rows of it, too")
    parser.add_argument("--streaming-settings", default="",
                        help="of it: LANES,MODE,THREADS such as 4,overlap,2; default: what short runs at the first limit find best")
    parser.add_argument("--sluice-options", default="", help="more options for sluice run, in one word: '--chunk 512'")
    parser.add_argument("--json", default="", help="all figures of all runs, into this file")
    parser.add_argument("--ledger", default="", help="append the medians to this ledger: bench/results/llamacpp.csv")
    parser.add_argument("--shape", default="", help="what --ledger calls the model: Qwen1.5-MoE-A2.7B; default: the name of --store")
    parser.add_argument("--sluice", default=os.path.join(ROOT, "build/sluice"))
    parser.add_argument("--bench", default=os.path.join(ROOT, "build/release/bin"), help="where sluice_bench_kernels is")
    parser.add_argument("--runner", default=os.path.join(CACHE, "build/llama-runner"))
    options = parser.parse_args()
    for limit in options.memory.split(","):
        try:
            bytes_of = size(limit)
            if bytes_of is not None and bytes_of <= size(options.headroom):
                parser.error(f"--memory: {limit} leaves nothing beside --headroom {options.headroom}")
        except ValueError:
            parser.error(f"--memory, --headroom: expected a number of GB or (--memory) none, found {limit}, {options.headroom}")
    if options.settings:
        load, _, threads = options.settings.partition(",")
        if load not in ("mmap", "stored", "none", "dio") or not threads.isdigit() or int(threads) < 1:
            parser.error(f"--settings: expected mmap, stored, none or dio, a comma and threads, found {options.settings}")
    if options.streaming_settings:
        try:
            streaming.split(options.streaming_settings)
        except ValueError:
            parser.error(f"--streaming-settings: expected lanes, serial, overlap or overlap+predict, and threads, such as 4,overlap,2, found "
                         f"{options.streaming_settings}")
    for kib in options.read_ahead.split(","):
        if kib != "found" and not kib.isdigit():
            parser.error(f"--read-ahead: expected found or KiB, found {kib}")
    for name, least in (("runs", 1), ("prompt", 1), ("seconds", 1)):
        if getattr(options, name) < least:
            parser.error(f"--{name}: expected at least {least}, found {getattr(options, name)}")
    if options.json and not os.access(os.path.dirname(os.path.abspath(options.json)), os.W_OK):
        parser.error(f"--json: expected a file in a folder that can be written to, found {options.json}")
    unknown = set(options.cache.split(",")) - {"cold", "warm"}
    if unknown:
        parser.error(f"--cache: expected cold, warm or both, found {options.cache}")
    if options.n < 2:
        parser.error(f"-n: expected at least 2 tokens, the first of which is the prompt's, found {options.n}")
    return options


class Comparison:
    def __init__(self, options):
        self.o = options
        model = contents(options.sluice, options.store)
        draw = random.Random(1)
        self.prompt, self.second, self.short = (",".join(str(draw.randrange(model["vocab"])) for _ in range(count))
                                                for count in (options.prompt, options.prompt, options.first_token))
        self.runs, self.disk_rates, self.tuned = [], [], {}
        self.settings = tuple(options.settings.split(",")) if options.settings else None
        self.streaming = None
        if options.streaming:
            self.streaming = streaming.Streaming(options.streaming, options.gguf, kept_always(model), model["experts"]["bytes"],
                                                 options.streaming_settings)

    # --- One program, once

    def peer_command(self, settings, prompt, predict, seconds):
        return [self.o.runner, "-m", self.o.gguf, "--tokens", prompt, "-n", str(predict), "--load", settings[0], "-t", settings[1],
                "--seconds", str(seconds)]

    def run_llamacpp(self, group, settings, prompt=None, predict=None, seconds=None):
        command = self.peer_command(settings, prompt or self.prompt, predict or self.o.n, seconds or self.o.seconds)
        return self.run_peer(group, command, ",".join(settings))

    def run_streaming(self, group, limit, settings=None, prompt=None, predict=None, seconds=None):
        settings = settings or self.streaming.settings
        command = self.streaming.command(limit, settings, prompt or self.prompt, predict or self.o.n, seconds or self.o.seconds)
        return self.run_peer(group, command, f"{settings}, cache of {command[command.index('--cache-mb') + 1]} MiB")

    def run_peer(self, group, command, settings):
        done = Watched(command, group)
        if done.failed:
            return {"failed": done.failed, "settings": settings, "peak": done.peak}
        out, decoded = done.json, len(done.json["tokens"]) - 1
        begin = out["load"]["seconds"] + sum(p["seconds"] for p in out["prefill"])
        decode = out["decode"]
        joules = done.between(begin, begin + decode["seconds"])["joules"]
        return {"load_s": out["load"]["seconds"], "prefill_s": out["prefill"][-1]["seconds"], "prefill_read_bytes": out["prefill"][-1]["read_bytes"],
                "first_token_s": begin, "decode_tok_s": decoded / decode["seconds"] if decoded else 0, "decoded": decoded,
                "read_bytes_per_token": decode["read_bytes"] / max(decoded, 1), "cpu_s_per_token": decode["cpu_s"] / max(decoded, 1),
                "joules_per_token": None if joules is None else joules / max(decoded, 1), "peak": done.peak, "seconds": done.seconds,
                "tokens": out["tokens"], "settings": settings,
                "engine_name": out.get("engine", "llama.cpp"), "cache_hit_percent": out.get("cache_hit_percent")}

    def sluice_command(self, limit, prompts, predict):
        command = [self.o.sluice, "run", self.o.store, "-n", str(predict), "--temp", "0", "--ignore-eos", "--json", "-q"]
        for prompt in prompts:
            command += ["--tokens", prompt]
        if limit is not None:
            command += ["--memory", str(limit - size(self.o.headroom))]
        return command + self.o.sluice_options.split()

    def run_sluice(self, group, limit, prompt=None, predict=None):
        done = Watched(self.sluice_command(limit, [prompt or self.prompt], predict or self.o.n), group)
        if done.failed:
            return {"failed": done.failed, "peak": done.peak}
        out, times, decoded = done.json, done.json["timing"], len(done.json["tokens"]) - 1
        first = times["first_token_s"]
        decode = done.between(first, first + times["decode_s"])
        return {"load_s": times["load_s"], "prefill_s": times["prefill_s"], "first_token_s": first,
                "prefill_read_bytes": done.between(first - times["prefill_s"], first)["read_bytes"],
                "decode_tok_s": decoded / times["decode_s"], "decoded": decoded, "read_bytes_per_token": decode["read_bytes"] / decoded,
                "cpu_s_per_token": decode["cpu_s"] / decoded,
                "joules_per_token": None if decode["joules"] is None else decode["joules"] / decoded, "peak": done.peak,
                "seconds": done.seconds, "tokens": out["tokens"], "io_bytes": out["io"]["bytes_read"],
                "all_read_bytes": done.at(done.seconds)[1], "accounted": out["memory"]["peak"]}

    def run_sluice_second_prompt(self, group, limit):
        """Prefill with the weights in memory: the second of two prompts."""
        done = Watched(self.sluice_command(limit, [self.prompt, self.second], 1), group)
        if done.failed:
            return {"failed": done.failed, "peak": done.peak}
        first, second = (sequence["prefill_s"] for sequence in done.json["sequences"])
        return {"load_s": done.json["timing"]["load_s"], "prefill_s": second - first, "peak": done.peak, "seconds": done.seconds}

    # --- All of them, in turns

    def note(self, engine, memory, read_ahead, cache, turn, figures):
        self.runs.append({"engine": engine, "memory": memory, "read_ahead": read_ahead, "cache": cache, "turn": turn, **figures})
        text = figures.get("failed") or (f"prefill {figures['prefill_s']:.2f} s, " +
                                         (f"{figures['decode_tok_s']:.3f} tok/s, " if "decode_tok_s" in figures else "") +
                                         f"{figures['seconds']:.0f} s in all")
        print(f"{datetime.datetime.now():%H:%M:%S} {memory} turn {turn + 1}: {engine}, read-ahead {read_ahead}, {cache}: {text}", file=sys.stderr)

    def tune(self, limit):
        """Load mode and threads of llama.cpp that decode fastest, in a short run each."""
        with open("/proc/meminfo") as lines:
            available = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
        fits = os.path.getsize(self.o.gguf) < 0.8 * min(limit or available, available)
        tried = {}
        for settings in [("mmap", "2"), ("stored", "2"), ("stored", "1")] + ([("none", "2"), ("dio", "2")] if fits else []):
            with MemoryGroup(limit) as group:
                machine.drop_from_cache(self.o.gguf)  # pages that the run before paid for would be free
                figures = self.run_llamacpp(group, settings, prompt=SHORT_PROMPT, predict=6, seconds=20)
            tried[",".join(settings)] = figures.get("decode_tok_s", 0)
            print(f"llama.cpp {','.join(settings)}: {tried[','.join(settings)]:.3f} tok/s {figures.get('failed', '')}", file=sys.stderr)
        return tuple(max(tried, key=tried.get).split(",")), tried

    def tune_streaming(self, limit):
        def run(settings):
            with MemoryGroup(limit) as group:
                machine.drop_from_cache(self.o.gguf)
                return self.run_streaming(group, limit, settings, SHORT_PROMPT, 6, 20)

        return self.streaming.tune(limit, run)

    def in_group(self, limit, caches, run, note):
        """A cold run, and a warm one in the same group: pages that another group pays for would be free."""
        with MemoryGroup(limit) as group:
            machine.drop_from_cache(self.o.gguf, self.o.store)
            figures = run(group)
            if "cold" in caches:
                note("cold", figures)
            if "warm" in caches:
                note("warm", run(group))

    def compare(self, read_ahead):
        caches = self.o.cache.split(",")
        for memory in self.o.memory.split(","):
            limit = size(memory)
            settings = self.settings
            if settings is None:
                read_ahead.set(128)
                settings, self.tuned.setdefault(memory, {})["llama.cpp"] = self.tune(limit)
            if self.streaming and not self.streaming.settings:
                self.tuned.setdefault(memory, {})["streaming peer"] = self.tune_streaming(limit)
            for turn in range(self.o.runs):
                for kib in self.o.read_ahead.split(","):
                    self.disk_rates.append(machine.best_direct_rate(self.o.store))
                    read_ahead.set(read_ahead.found if kib == "found" else int(kib))
                    name = f"{read_ahead.found} KiB, as found" if kib == "found" else f"{kib} KiB"
                    self.in_group(limit, caches, lambda group: self.run_llamacpp(group, settings),
                                  lambda cache, f: self.note("llama.cpp", memory, name, cache, turn, f))
                    read_ahead.set(read_ahead.found)
                    self.in_group(limit, caches, lambda group: self.run_sluice(group, limit),
                                  lambda cache, f: self.note("sluice", memory, "direct", cache, turn, f))
                    if self.streaming:
                        self.in_group(limit, caches, lambda group: self.streaming.living(limit, lambda: self.run_streaming(group, limit)),
                                      lambda cache, f: self.note("streaming", memory, "direct", cache, turn, f))
                    if self.o.first_token:
                        self.first_tokens(limit, memory, settings, turn, kib, read_ahead, name)
                    if limit is None:
                        with MemoryGroup(None) as group:
                            self.note("sluice", memory, "direct", "second prompt", turn, self.run_sluice_second_prompt(group, None))

    def first_tokens(self, limit, memory, settings, turn, kib, read_ahead, name):
        """Cold starts with a short prompt; two tokens, so that all engines count alike. Read-ahead concerns llama.cpp alone."""
        def cold(engine, read_ahead_of, run):
            with MemoryGroup(limit) as group:
                machine.drop_from_cache(self.o.gguf, self.o.store)
                self.note(engine, memory, read_ahead_of, f"{self.o.first_token} ids", turn, run(group))

        read_ahead.set(read_ahead.found if kib == "found" else int(kib))
        cold("llama.cpp", name, lambda group: self.run_llamacpp(group, settings, self.short, 2))
        read_ahead.set(read_ahead.found)
        if kib != self.o.read_ahead.split(",")[0]:
            return
        cold("sluice", "direct", lambda group: self.run_sluice(group, limit, self.short, 2))
        if self.streaming:
            cold("streaming", "direct",
                 lambda group: self.streaming.living(limit, lambda: self.run_streaming(group, limit, None, self.short, 2)))

    # --- What the machine could do

    def rates(self):
        rows = []
        program = os.path.join(self.o.bench, "sluice_bench_kernels")
        file = f"/tmp/sluice-peers-{os.getpid()}.json"
        subprocess.run([program, "--only", "limits", "--mib", "1024", "--rounds", "5", "--json", file], check=True, stdout=subprocess.DEVNULL)
        with open(file) as text:
            rows = json.load(text)["rows"]
        os.remove(file)
        return {"disk": statistics.median(self.disk_rates),
                "memory": max(r["bytes"] / r["seconds"]["median"] for r in rows if r["name"].startswith("read, ")),
                "flops": max(r["flops"] / r["seconds"]["median"] for r in rows if "peak" in r["name"])}

    # --- The table

    def rows(self, memory, short=False):
        """Runs of one kind together, in order of appearance; `short`: those of --first-token."""
        kinds = {}
        for run in self.runs:
            if run["memory"] == memory and run["cache"].endswith(" ids") == short:
                kinds.setdefault((run["engine"], run["read_ahead"], run["cache"]), []).append(run)
        return kinds

    def names(self):
        """Of engines that run one way."""
        peers = (r["engine_name"] for r in self.runs if r["engine"] == "streaming" and "engine_name" in r)
        return {"sluice": "Sluice", "streaming": next(peers, "streaming peer")}

    def print_table(self, memory, bounds):
        kinds = self.rows(memory)

        def median(runs, key):
            values = [r[key] for r in runs if r.get(key) is not None]
            return statistics.median(values) if values else None

        ours = {cache: {key: median(runs, key) for key in ("decode_tok_s", "prefill_s")}
                for (engine, _, cache), runs in kinds.items() if engine == "sluice"}
        if ours.get("second prompt", {}).get("prefill_s"):  # llama.cpp's weights are in memory, too, when it begins
            for cache in ours:
                ours[cache]["prefill_s"] = ours["second prompt"]["prefill_s"]
        best = max((kind["decode_tok_s"] for kind in ours.values() if kind["decode_tok_s"]), default=None)
        settings = {r["engine"]: r["settings"] for r in self.runs if r["memory"] == memory and "settings" in r}
        peer = self.names()["streaming"]
        print(f"\n{memory if memory != 'none' else 'no limit'} (llama.cpp: load mode and threads {settings.get('llama.cpp', '')}" +
              (f"; {peer}: lanes, mode and threads {settings['streaming']}" if "streaming" in settings else "") + ")")
        for words in (("load", "prefill", "Sluice", "decode tok/s", "Sluice", "of", "MB read", "CPU s", "peak", "J"),
                      ("s", "tok/s", "is ×", "(least … most)", "is ×", "bound", "a token", "/token", "GiB", "/token")):
            print(" ".join([f"{'':44}", *(f"{word:>{width}}" for word, width in zip(words, (6, 8, 6, 22, 6, 6, 8, 6, 6, 6)))]))
        for (engine, read_ahead, cache), runs in kinds.items():
            name = {"sluice": f"sluice, {cache}", "streaming": f"{peer}, {cache}"}.get(engine, f"{engine}, {read_ahead}, {cache}")
            good = [r for r in runs if "failed" not in r]
            if not good:
                print(f"{name:44} failed: {runs[0]['failed'][:90]}")
                continue
            prefill, decode = median(good, "prefill_s"), median(good, "decode_tok_s")
            beside = ours.get(cache, {}) if engine != "sluice" else {}  # runs that began alike
            line = f"{name:44} {median(good, 'load_s'):6.1f} {self.o.prompt / prefill:8.1f} "
            line += f"{prefill / beside['prefill_s']:6.1f} " if beside.get("prefill_s") else f"{'':6} "
            if decode is None:
                line += f"{'':22} {'':6} {'':6} {'':8} {'':6} "
            else:
                rates = [r["decode_tok_s"] for r in good]
                line += f"{f'{decode:.3f} ({min(rates):.3f} … {max(rates):.3f})':>22} "
                line += f"{beside['decode_tok_s'] / decode:6.1f} " if beside.get("decode_tok_s") and decode else f"{'':6} "
                line += f"{decode / bounds['online']['tok_s']:6.2f} "
                line += f"{median(good, 'read_bytes_per_token') * 1e-6:8.1f} {median(good, 'cpu_s_per_token'):6.2f} "
            joules = median(good, "joules_per_token")
            line += f"{max(r['peak'] for r in good) / 2**30:6.2f} " + (f"{joules:6.1f}" if joules else f"{'-':>6}")
            print(line + (f"; {len(runs) - len(good)} of {len(runs)} failed" if len(good) < len(runs) else ""))
        for who, tried in self.tuned.get(memory, {}).items():
            print(f"{who}, short runs, tok/s: " + "; ".join(f"{name} {rate:.3f}" for name, rate in tried.items()))
        prefill = bounds["prefill"]["in_memory_tok_s" if memory == "none" else "tok_s"]
        for kind, what in (("online", "bound, best of lru and lfu"), ("optimal", "bound, cache that knows the future")):
            it = bounds[kind]
            share = f"{best / it['tok_s']:.2f} reached" if best else ""
            print(f"{what:44} {'':6} {prefill:8.1f} {'':6} {it['tok_s']:22.3f} {'':6} {'':6} {it['read_bytes'] * 1e-6:8.1f}   {share}")
        short = {f"{engine}, {read_ahead}" if engine == "llama.cpp" else self.names()[engine]:
                 median([r for r in runs if "failed" not in r], "first_token_s")
                 for (engine, read_ahead, _), runs in self.rows(memory, short=True).items()}
        if short:
            least = min((seconds for name, seconds in short.items() if name.startswith("llama.cpp") and seconds), default=None)
            share = f"; Sluice's is {short['Sluice'] / least:.2f} of llama.cpp's least" if short["Sluice"] and least else ""
            text = "; ".join(f"{name}: {f'{seconds:.2f} s' if seconds else 'failed'}" for name, seconds in short.items())
            print(f"first token of {self.o.first_token} ids, cold, loading included: {text}{share}")

    def ledger_rows(self, started, repeated, load, bounds):
        """Medians of each kind of run, and the bounds, as bench/results/README.md says."""
        facts = bench.machine()
        head = {"date": started.isoformat(timespec="seconds"), "commit": bench.commit(), "machine": bench.machine_name(facts),
                "command": "compare.py " + " ".join(f"{flag} {getattr(self.o, flag.strip('-'))}" for flag in
                                                    ("--memory", "--cache", "--prompt", "-n", "--runs", "--seconds", "--settings")
                                                    if getattr(self.o, flag.strip("-"))),
                "note": f"load {load:.1f}" if load > 0.5 else None}
        shape = f"{self.o.shape or os.path.basename(self.o.store)}; {100 * repeated:.0f} % repeated"
        ours = next((r["tokens"] for r in self.runs if r["engine"] == "sluice" and "tokens" in r), None)
        for memory in self.o.memory.split(","):
            budget = "no limit" if memory == "none" else memory.replace("GB", " GB")
            for (engine, read_ahead, cache), runs in self.rows(memory).items():
                good = [r for r in runs if "failed" not in r]
                who = self.names().get(engine, f"llama.cpp, {'as found' if 'as found' in read_ahead else 'tuned'}")
                equal = all(r.get("tokens") == ours[:len(r.get("tokens", ours))] for r in good) if ours else False
                values = {name: [r[key] * factor for r in good if r.get(key) is not None] for name, (key, factor) in MEASURES.items()}
                values["prefill tok/s"] = [self.o.prompt / r["prefill_s"] for r in good]
                for measure, of_runs in values.items():
                    if of_runs:
                        yield {**head, "case": f"{shape}; {budget}; {cache}; {who}", "measure": measure, "rounds": len(of_runs),
                               "median": statistics.median(of_runs), "low": min(of_runs), "high": max(of_runs),
                               "checked": "yes" if equal else None}
            for (engine, read_ahead, cache), runs in self.rows(memory, short=True).items():
                values = [r["first_token_s"] for r in runs if "failed" not in r]
                who = self.names().get(engine, f"llama.cpp, {'as found' if 'as found' in read_ahead else 'tuned'}")
                if values:
                    yield {**head, "case": f"{shape}; {budget}; cold, {cache}; {who}", "measure": "first token s", "rounds": len(values),
                           "median": statistics.median(values), "low": min(values), "high": max(values)}
            for kind, who in (("online", "bound, LRU or LFU"), ("optimal", "bound, future known")):
                it = bounds[memory][kind]
                for measure, value in (("decode tok/s", it["tok_s"]), ("MB read a token", it["read_bytes"] * 1e-6)):
                    yield {**head, "case": f"{shape}; {budget}; cold; {who}", "measure": measure, "median": value}

    def agreement(self):
        """Whether all runs gave the same tokens, as far as they go: --seconds ends some early."""
        answers = {}
        for run in self.runs:
            if "tokens" in run and not run["cache"].endswith(" ids"):
                answers.setdefault(run["engine"], []).append(run["tokens"])
        if "sluice" not in answers or len(answers) < 2:
            return "no answers to compare"
        ours = answers.pop("sluice")
        text = f"Sluice's answers are {'all equal' if all(tokens == ours[0] for tokens in ours) else 'NOT EQUAL, which must never be'}"
        for engine, theirs in answers.items():
            differ = [next(i for i, (a, b) in enumerate(zip(tokens, ours[0])) if a != b) for tokens in theirs if tokens != ours[0][:len(tokens)]]
            text += (f"; {self.names().get(engine, engine)}'s equal them in {len(theirs) - len(differ)} of {len(theirs)} runs "
                     f"(of {min(map(len, theirs))} to {max(map(len, theirs))} tokens)")
            if differ:
                text += f", and for the first {min(differ)} tokens in the others: it rounds otherwise"
        return text


def main():
    options = parse()
    for path in (options.gguf, options.store, options.runner, options.streaming or options.runner, options.sluice,
                 os.path.join(options.bench, "sluice_bench_kernels")):
        if not os.path.exists(path):
            sys.exit(f"compare.py: {path}: not there; README.md beside this file says how it is made")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that read-ahead is set back
    comparison = Comparison(options)
    started = datetime.datetime.now()
    load = os.getloadavg()[0]
    with machine.ReadAhead(options.store) as read_ahead:
        comparison.compare(read_ahead)
    rates = comparison.rates()
    routing = bound.Routing(options.sluice, options.store, comparison.prompt, options.n)
    repeated = routing.repeated()
    bounds = {memory: bound.bounds(routing, size(memory), rates, options.prompt) for memory in options.memory.split(",")}

    print(f"{os.path.basename(options.store)}: prompt of {options.prompt} tokens, {options.n} generated; {100 * repeated:.0f} % of a token's "
          f"experts were used by the token before it")
    spread = f"{min(comparison.disk_rates) / GB:.2f} … {max(comparison.disk_rates) / GB:.2f}"
    print(f"disk {rates['disk'] / GB:.2f} GB/s ({spread}), memory {rates['memory'] / GB:.1f} GB/s, multiply-add {rates['flops'] * 1e-9:.0f} GFLOP/s, "
          f"measured in the same run; load of the machine before it {load:.1f}; {(datetime.datetime.now() - started).seconds / 60:.0f} minutes")
    print(f"energy: {'readable' if machine.joules() is not None else 'not readable here'}")
    for memory in options.memory.split(","):
        comparison.print_table(memory, bounds[memory])
    print(f"\n{comparison.agreement()}")
    if options.ledger:
        ledger.append(options.ledger, list(comparison.ledger_rows(started, repeated, load, bounds)))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"date": started.isoformat(timespec="seconds"), "load": load, "prompt": options.prompt, "predict": options.n,
                       "rates": rates, "disk_rates": comparison.disk_rates, "repeated": repeated, "tuned": comparison.tuned, "bounds": bounds,
                       "runs": comparison.runs}, file, indent=1)


if __name__ == "__main__":
    main()
