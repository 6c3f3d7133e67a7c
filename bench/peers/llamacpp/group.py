"""A memory cgroup (v1 or v2), and programs that run inside one and are watched from outside."""
import json
import os
import subprocess
import threading
import time

import machine

TICK = os.sysconf("SC_CLK_TCK")


class MemoryGroup:
    """Limits what a program and the page cache that it fills may take together; the kernel counts both. Limit None: counts only."""

    number = 0

    def __init__(self, limit):
        MemoryGroup.number += 1
        name = f"sluice-peers-{os.getpid()}-{MemoryGroup.number}"
        v1, v2 = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"
        if os.path.exists(f"{v1}/memory.limit_in_bytes"):
            self.path, self.v2 = f"{v1}/{name}", False
        elif os.path.exists(f"{v2}/cgroup.controllers"):
            with open(f"{v2}/cgroup.subtree_control", "w") as file:
                file.write("+memory")
            self.path, self.v2 = f"{v2}/{name}", True
        else:
            raise OSError("no memory cgroups here: neither /sys/fs/cgroup/memory nor a unified hierarchy")
        os.mkdir(self.path)
        if limit is not None:
            self.write("memory.max" if self.v2 else "memory.limit_in_bytes", limit)

    def write(self, name, value):
        with open(f"{self.path}/{name}", "w") as file:
            file.write(str(value))

    def read(self, name):
        with open(f"{self.path}/{name}") as file:
            return file.read()

    def peak(self):
        return int(self.read("memory.peak" if self.v2 else "memory.max_usage_in_bytes"))

    def reset_peak(self):
        if not self.v2:
            self.write("memory.max_usage_in_bytes", 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _ in range(50):  # a group is busy until its last process is gone
            try:
                return os.rmdir(self.path)
            except OSError:
                time.sleep(0.1)


class Watched:
    """What a program did: its JSON, and its counters at any time between its start and its end."""

    def __init__(self, command, group, seconds_limit=3600):
        def join():
            group.write("cgroup.procs", os.getpid())

        self.samples = []  # (time, CPU seconds, bytes read, joules or None)
        group.reset_peak()
        self.start = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=join)
        stop = threading.Event()
        sampler = threading.Thread(target=self.sample, args=(process.pid, stop))
        killer = threading.Timer(seconds_limit, process.kill)
        sampler.start()
        killer.start()
        try:
            out, err = process.communicate()
        finally:
            process.kill()  # where this program was stopped meanwhile
            killer.cancel()
            stop.set()
            sampler.join()
        self.seconds = time.monotonic() - self.start
        self.peak = group.peak()
        self.failed = None
        if process.returncode != 0:
            self.failed = f"exit code {process.returncode}: {err.decode(errors='replace').strip()[-500:]}"
        else:
            self.json = json.loads(out)

    def sample(self, pid, stop):
        while not stop.is_set():
            try:
                with open(f"/proc/{pid}/stat") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
                with open(f"/proc/{pid}/io") as file:
                    read = next(int(line.split()[1]) for line in file if line.startswith("read_bytes:"))
                self.samples.append((time.monotonic(), (int(fields[11]) + int(fields[12])) / TICK, read, machine.joules()))
            except (OSError, ValueError, IndexError, StopIteration):
                pass  # not there yet, or no longer
            stop.wait(0.02)

    def between(self, begin, end):
        """CPU seconds, bytes read and joules (None: not readable) from `begin` to `end`, both since the start."""
        a, b = self.at(begin), self.at(end)
        return {"cpu_s": b[0] - a[0], "read_bytes": b[1] - a[1], "joules": None if None in (a[2], b[2]) else b[2] - a[2]}

    def at(self, when):
        when += self.start
        before = (self.start, 0.0, 0, self.samples[0][3] if self.samples else None)
        for sample in self.samples:
            if sample[0] >= when:
                part = (when - before[0]) / max(sample[0] - before[0], 1e-9)
                return tuple(None if None in (x, y) else x + (y - x) * part for x, y in zip(before[1:], sample[1:]))
            before = sample
        return before[1:]
