"""The engine that reads experts itself: which settings, and how large a cache it can have under a limit. See ../bigmoe/README.md."""
import sys

import machine

MIB = 1 << 20
STEP = 256  # MiB by which a cache shrinks after its program was killed
BESIDE = 384  # MiB: the program, its buffers of one layer and its keys and values
TRIED = ("4,overlap,2", "4,serial,2", "2,overlap,2", "8,overlap,2", "4,overlap,1", "4,overlap+predict,2")


def split(settings):
    """LANES,MODE,THREADS."""
    lanes, mode, threads = settings.split(",")
    how, _, predict = mode.partition("+")
    if how not in ("serial", "overlap") or predict not in ("", "predict") or min(int(lanes), int(threads)) < 1:
        raise ValueError(settings)
    return lanes, how, predict == "predict", threads


class Streaming:
    """Settings of the engine, and a cache for each limit, which shrinks until the program lives."""

    least = 1500  # MiB; the engine takes no smaller cache

    def __init__(self, runner, gguf, dense_bytes, expert_bytes, settings=""):
        self.runner, self.gguf, self.settings = runner, gguf, settings
        self.dense, self.experts = dense_bytes // MIB, max(self.least, expert_bytes // MIB + 1)
        self.caches = {}  # limit: MiB

    def cache(self, limit):
        most = self.experts if limit is None else min(self.experts, limit // MIB - self.dense - BESIDE)
        return self.caches.setdefault(limit, most)

    def command(self, limit, settings, prompt, predict, seconds):
        lanes, mode, ahead, threads = split(settings)
        cache = self.cache(limit)
        return [self.runner, "-m", self.gguf, "--tokens", prompt, "-n", str(predict), "-t", threads, "--lanes", lanes, "--mode", mode,
                "--predict", str(int(ahead)), "--cache-mb", str(cache if cache >= self.least else 0), "--seconds", str(seconds)]

    def living(self, limit, run):
        """`run` with the largest cache with which the program is not killed."""
        while True:
            figures = run()
            # -9: by the kernel, for its memory.
            if "exit code -9" not in figures.get("failed", "") or self.cache(limit) - STEP < self.least:
                return figures
            self.caches[limit] -= STEP
            machine.drop_from_cache(self.gguf)
            print(f"streaming peer: killed; its cache is now {self.caches[limit]} MiB", file=sys.stderr)

    def tune(self, limit, run):
        """The fastest settings in short runs at one limit; kept for the others. run(settings): figures."""
        if self.settings:
            return {}
        tried = {}
        for settings in TRIED:
            figures = self.living(limit, lambda: run(settings))
            tried[settings] = figures.get("decode_tok_s", 0)
            print(f"streaming peer {settings}: {tried[settings]:.3f} tok/s {figures.get('failed', '')}", file=sys.stderr)
        self.settings = max(tried, key=tried.get)
        return tried
