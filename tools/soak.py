#!/usr/bin/env python3
"""A server under load and misuse for a long time: what is taken must be given back, and no answer may change.

    tools/soak.py PROGRAM [--seconds 1200] [--requests 10000] [--memory 64MiB] [--clients 64] [--model DIR] [--seed 1] [--no-group]

Starts `sluice serve` with the bundled model and sends rounds of requests (bench/serve_load.py): mixed lengths, prompts that come
again, readers of one byte a second, clients that leave while they wait, while the prompt is computed and while the answer comes,
and garbage. The process is stopped and let go on in between. Behind each round, some of its answers are asked for again, alone.
Between rounds all clients at once ask for long answers with log-probabilities, and read nothing of them.
At the end, and behind each round: no block of the KV pool is in use, the accounts of memory and the open files are as behind the
first round, resident memory has not grown and is within the budget. Where memory groups can be made (as root), the server runs in
one of the budget and 64 MiB, whose limit must never be reached, and whose peak is printed. SIGTERM then ends the server with exit code 0.
Ends with 1 at the first thing that is wrong."""
import argparse
import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench"))
import serve_load  # noqa: E402

GROWTH = 4 << 20  # bytes of resident memory that rounds may differ by


SLACK = 64 << 20  # bytes of the memory group beyond the budget


class Group:
    """A memory group (cgroup v1 or v2) for the server alone."""

    def __init__(self, limit):
        self.path = None
        for parent, v2 in (("/sys/fs/cgroup/memory", False), ("/sys/fs/cgroup", True)):
            path = f"{parent}/sluice-soak-{os.getpid()}"
            try:
                os.mkdir(path)
            except OSError:
                continue
            names = ("memory.max", "memory.peak", "memory.events") if v2 else ("memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.failcnt")
            if not all(os.path.exists(f"{path}/{name}") for name in names):
                os.rmdir(path)
                continue
            with open(f"{path}/{names[0]}", "w") as file:
                file.write(str(limit))
            self.path, self.peak_file, self.hits_file, self.limit = path, names[1], names[2], limit
            return

    def join(self):
        with open(self.path + "/cgroup.procs", "w") as file:
            file.write(str(os.getpid()))

    def read(self, name):
        with open(f"{self.path}/{name}") as file:
            return file.read()

    def peak(self):
        return int(self.read(self.peak_file))

    def hits(self):
        text = self.read(self.hits_file)
        return sum(int(line.split()[1]) for line in text.splitlines() if line.split()[0] in ("max", "oom")) if "\n" in text.strip() else int(text)

    def end(self):
        try:
            os.rmdir(self.path)
        except OSError:
            pass


def bytes_of(text):
    number, unit = re.fullmatch(r"([0-9.]+)\s*([A-Za-z]*)", text).groups()
    return int(float(number) * {"": 1, "MiB": 1 << 20, "GiB": 1 << 30, "MB": 10 ** 6, "GB": 10 ** 9}[unit])


class Server:
    def __init__(self, program, options, group=None):
        words = [program, "serve", options.model, "--memory", options.memory, "--port", "0", "--chat-template", "chatml", "--parallel", "8",
                 "-c", "1024", "--kv-tokens", "4096"]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True,
                                        preexec_fn=group.join if group else None)
        self.log = []
        self.ready = threading.Event()
        threading.Thread(target=self.read, daemon=True).start()
        if not self.ready.wait(60):
            fail("the server does not get ready: " + " ".join(self.log[-3:]))

    def read(self):
        for line in self.process.stderr:
            self.log.append(line.strip())
            found = re.search(r"(http://127\.0\.0\.1:\d+) serves", line)
            if found:
                self.url = found.group(1)
                self.ready.set()

    def metrics(self):
        text = urllib.request.urlopen(self.url + "/metrics", timeout=30).read().decode()
        values = {}
        for line in text.splitlines():
            if line.startswith("#") or not line.strip():
                continue
            name, value = line.rsplit(" ", 1)
            values[re.sub(r'model_name="[^"]*",?', "", name)] = float(value)
        return values

    def quiet(self):
        """Until nothing is answered any more."""
        for _ in range(600):
            values = self.metrics()
            if all(of(values, f"sluice_num_requests_{state}") == 0 for state in ("running", "waiting", "stalled")):
                return values
            time.sleep(0.1)
        fail("requests stay though no client is left")


def of(values, name):
    return sum(value for key, value in values.items() if key == name or key.startswith(name + "{"))


def fail(text):
    print("soak.py: " + text, file=sys.stderr)
    os._exit(1)


def accounts(values):
    return {key: value for key, value in values.items() if key.startswith("sluice_memory_used_bytes")}


def compare(first, values):
    used = values.get('sluice_kv_blocks{state="used"}', -1)
    if used != 0:
        fail(f"{used} blocks of the KV pool are in use though nothing runs")
    for key, value in accounts(values).items():
        if "experts" not in key and "staging" not in key and value != accounts(first)[key]:
            fail(f"{key} was {accounts(first)[key]}, and is {value}")
    if of(values, "sluice_process_open_fds") > of(first, "sluice_process_open_fds") + 2:
        fail("files stay open")
    resident, before = (of(one, "sluice_process_resident_memory_bytes") for one in (values, first))
    if resident > before + GROWTH:
        fail(f"resident memory grows: {before} bytes behind the first round, now {resident}")


def flood(server, clients):
    """All limits at once: everybody wants much, and nobody reads. Then all leave."""
    body = json.dumps({"prompt": list(range(3, 40)), "max_tokens": 150, "temperature": 1, "ignore_eos": True, "stream": True, "logprobs": 20}).encode()
    target, sockets = serve_load.Server(server.url, ""), []
    for _ in range(clients):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect((target.host, target.port))
        one.sendall(target.head(len(body)) + body)
        sockets.append(one)
    slowest, end = 0.0, time.monotonic() + 900
    while time.monotonic() < end:
        begin = time.monotonic()
        urllib.request.urlopen(server.url + "/health", timeout=30).read()
        slowest = max(slowest, time.monotonic() - begin)
        values = server.metrics()
        if all(of(values, f"sluice_num_requests_{state}") == 0 for state in ("running", "waiting", "stalled")):
            break
        time.sleep(0.05)
    else:
        fail("slow readers hold their requests for ever")
    for one in sockets:
        one.close()
    print(f"{clients} clients that read nothing: all have ended; /health within {1000 * slowest:.0f} ms")
    return server.quiet()


def pause(server, stop):
    while not stop.wait(7):
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        server.process.send_signal(signal.SIGCONT)


def main(options):
    group = None if options.no_group else Group(bytes_of(options.memory) + SLACK)
    if group is not None and group.path is None:
        print("NO MEMORY GROUP CAN BE MADE HERE: the budget is not compared with the kernel's count")
        group = None
    # Pages of the program's files are charged to the group that reads them first: to ours, here.
    subprocess.run([options.program, "run", options.model, "-p", "Once", "-n", "2", "--memory", options.memory, "--quiet"], check=True,
                   stdout=subprocess.DEVNULL)
    server = Server(options.program, options, group)
    stop = threading.Event()
    threading.Thread(target=pause, args=(server, stop), daemon=True).start()
    begin, number, sent, first = time.monotonic(), 0, 0, None
    while time.monotonic() - begin < options.seconds and sent < options.requests:
        load = serve_load.options_of(["--url", server.url, "--clients", str(options.clients), "--requests", "300", "--prompt", "4:200",
                                      "--answer", "1:60", "--repeat", "0.3", "--slow", "0.1", "--leave", "0.3", "--garbage", "0.05",
                                      "--seed", str(options.seed + number), "--ids", "4000"])
        target = serve_load.Server(server.url, "")
        answers, seconds = asyncio.run(serve_load.run(target, load, number))
        row = serve_load.summary(answers, seconds)
        good = [a for a in answers if a.request.kind == "plain" and a.status == 200 and not a.error][:20]
        different = asyncio.run(serve_load.check(target, good))
        serve_load.shown(f"round {number + 1}", row)
        if different or row["failed"]:
            fail(f"{different} texts differ, {row['failed']} requests failed")
        values = server.quiet()
        first = first or values
        compare(first, values)
        number += 1
        sent += len(answers)
        compare(first, flood(server, options.clients))
        if group and group.hits():
            fail(f"the memory group's limit of {group.limit} bytes was reached")
    stop.set()
    server.process.send_signal(signal.SIGCONT)
    server.process.send_signal(signal.SIGTERM)
    code = server.process.wait(60)
    if code != 0:
        fail(f"the server ended with {code}: " + " ".join(server.log[-3:]))
    if group:
        print(f"peak of the memory group {group.peak() / 2 ** 20:.1f} MiB, limit {group.limit / 2 ** 20:.0f} MiB, budget {options.memory}")
        group.end()
    print(f"{sent} requests in {time.monotonic() - begin:.0f} s: all is as it was")


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=1200)
    parser.add_argument("--requests", type=int, default=10000)
    parser.add_argument("--memory", default="64MiB")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--model", default=os.path.join(ROOT, "models/fable-moe-18m"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-group", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main(options_of(sys.argv[1:]))
