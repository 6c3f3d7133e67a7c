#!/usr/bin/env python3
"""Load for a server that speaks the completions API: many clients at a time, and what they wait for.

    bench/serve_load.py --url http://127.0.0.1:8080 [--clients 16] [--requests 200 | --seconds 60] [--arrivals RATE]
                        [--prompt LOW:HIGH] [--answer LOW:HIGH] [--repeat SHARE] [--slow SHARE] [--leave SHARE] [--garbage SHARE]
                        [--check] [--against URL] [--rounds 3] [--seed 1] [--key KEY] [--ids VOCAB | --text FILE] [--json]

Clients send requests as fast as they are answered; with --arrivals, requests come by a Poisson process of so many a second, and
wait for a free client. Lengths are drawn evenly from LOW:HIGH: of prompts in tokens (--ids: random ids below VOCAB) or in words of
a text, of answers in tokens. --repeat: share of the prompts that have been sent before. Misbehaviour: --slow reads one byte a
second for a while, --leave closes the connection while the request waits or is answered, --garbage sends what is no request.
--check: each request that has an answer is sent again, alone, behind the load, and must have the same text. --against: a second
server gets the same load, in turns (A B A B …).

Prints, for each server, percentiles of the time to the first token, between tokens and to the end, and tokens a second. Uses
nothing but Python's library. Exit code 1 if a text differs, or a request fails that should not."""
import argparse
import asyncio
import dataclasses
import json
import random
import statistics
import sys
import time
import urllib.parse


@dataclasses.dataclass
class Request:
    number: int
    body: dict
    kind: str = "plain"  # plain, slow, leave, garbage
    leave_after: float = 0.0


@dataclasses.dataclass
class Answer:
    request: Request
    status: int = 0
    text: str = ""
    finish: str = ""
    error: str = ""
    tokens: int = 0
    prompt: int = 0
    cached: int = 0
    times: list = dataclasses.field(default_factory=list)  # seconds from the request to each event with text
    seconds: float = 0.0


def span(text):
    low, _, high = text.partition(":")
    return int(low), int(high or low)


class Load:
    """The same seed gives the same requests."""

    def __init__(self, options):
        self.random = random.Random(options.seed)
        self.options = options
        self.words = open(options.text, encoding="utf-8").read().split() if options.text else None
        self.sent = []

    def prompt(self):
        if self.sent and self.random.random() < self.options.repeat:
            return self.random.choice(self.sent)
        length = self.random.randint(*self.options.prompt)
        if self.words is None:
            prompt = [self.random.randrange(3, self.options.ids) for _ in range(length)]
        else:
            begin = self.random.randrange(max(1, len(self.words) - length))
            prompt = " ".join(self.words[begin:begin + length])
        self.sent.append(prompt)
        return prompt

    def request(self, number):
        draw = self.random.random()
        options = self.options
        body = {"model": "load", "prompt": self.prompt(), "max_tokens": self.random.randint(*options.answer), "stream": True,
                "stream_options": {"include_usage": True}, "temperature": self.random.choice([0, 0.8]),
                "seed": self.random.randrange(1 << 31), "ignore_eos": True}
        request = Request(number, body)
        for kind, share in (("slow", options.slow), ("leave", options.leave), ("garbage", options.garbage)):
            if draw < share:
                request.kind = kind
                break
            draw -= share
        request.leave_after = self.random.choice([0.0, 0.01, 0.1, 0.5, 2.0])
        return request


class Server:
    def __init__(self, url, key):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port, self.key, self.url = parts.hostname, parts.port or 80, key, url
        self.path = parts.path.rstrip("/") + "/v1/completions"

    def head(self, length):
        key = f"Authorization: Bearer {self.key}\r\n" if self.key else ""
        return (f"POST {self.path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nContent-Type: application/json\r\n{key}"
                f"Content-Length: {length}\r\nConnection: close\r\n\r\n").encode()


GARBAGE = [b"GET / HTTP/9.9\r\n\r\n", b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{\"prompt\"",
           b"\x00\xff\xfe" * 100, b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\n"]


async def send(server, request):
    answer, begin = Answer(request), time.monotonic()
    reader, writer = await asyncio.open_connection(server.host, server.port)
    try:
        if request.kind == "garbage":
            writer.write(GARBAGE[request.number % len(GARBAGE)])
            await asyncio.wait_for(reader.read(1 << 16), 40)
            return answer
        body = json.dumps(request.body).encode()
        writer.write(server.head(len(body)) + body)
        await writer.drain()
        if request.kind == "leave":
            await asyncio.sleep(request.leave_after)
            return answer
        if request.kind == "slow":
            head = b""
            for _ in range(3):
                head += await reader.readexactly(1)
                await asyncio.sleep(1)
            answer.status = int((head + await reader.readline()).split()[1])
        else:
            answer.status = int((await reader.readline()).split()[1])
        await read_events(reader, answer, begin)
    except (asyncio.IncompleteReadError, ConnectionError, IndexError, ValueError) as error:
        answer.error = answer.error or f"{type(error).__name__}: {error}"
    finally:
        answer.seconds = time.monotonic() - begin
        writer.close()
    return answer


async def read_events(reader, answer, begin):
    done = answer.status == 200
    if answer.status != 200:
        rest = await reader.read()
        answer.error = rest.decode("utf-8", "replace")[-300:]
        return
    done = False
    while line := await reader.readline():
        if not line.startswith(b"data: "):
            continue
        data = line[6:].strip()
        if data == b"[DONE]":
            done = True
            break
        take_event(json.loads(data), answer, time.monotonic() - begin)
    if not done and not answer.error:
        answer.error = "the stream ended early"


def take_event(event, answer, at):
    if "error" in event:
        answer.error = json.dumps(event["error"])
        return
    for choice in event.get("choices", []):
        if choice.get("text"):
            answer.text += choice["text"]
        answer.finish = choice.get("finish_reason") or answer.finish
        if not choice.get("finish_reason"):
            answer.times.append(at)
    usage = event.get("usage")
    if usage:
        answer.tokens, answer.prompt = usage["completion_tokens"], usage["prompt_tokens"]
        answer.cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)


async def run(server, options, round_number):
    load = Load(options)
    load.random.seed(options.seed + round_number)
    queue, answers = asyncio.Queue(), []
    begin = time.monotonic()

    def over(count):
        return count >= options.requests if not options.seconds else time.monotonic() - begin >= options.seconds

    async def arrive():
        number = 0
        while not over(number):
            if options.arrivals:
                await asyncio.sleep(load.random.expovariate(options.arrivals))
            while not options.arrivals and queue.qsize() >= options.clients:
                await asyncio.sleep(0.001)
            queue.put_nowait(load.request(number))
            number += 1
        for _ in range(options.clients):
            queue.put_nowait(None)

    async def client():
        while (request := await queue.get()) is not None:
            answers.append(await send(server, request))

    await asyncio.gather(arrive(), *(client() for _ in range(options.clients)))
    return answers, time.monotonic() - begin


async def check(server, answers):
    """Each text again, alone."""
    different = 0
    for answer in answers:
        if answer.request.kind != "plain" or answer.status != 200 or answer.error:
            continue
        alone = await send(server, Request(answer.request.number, answer.request.body))
        if alone.text != answer.text or alone.finish != answer.finish:
            different += 1
            print(f"request {answer.request.number}: {answer.text!r} beside others, {alone.text!r} alone", file=sys.stderr)
    return different


def percentiles(values):
    if not values:
        return None
    ordered = sorted(values)
    return {f"p{p}": ordered[min(len(ordered) - 1, int(p / 100 * len(ordered)))] for p in (50, 90, 99)}


def summary(answers, seconds):
    good = [a for a in answers if a.request.kind == "plain" and a.status == 200 and not a.error]
    between = [after - before for a in good for before, after in zip(a.times, a.times[1:])]
    refused = [a for a in answers if a.status in (429, 503)]
    failed = [a for a in answers
              if a.request.kind in ("plain", "slow") and (a.error or a.status != 200) and a.status not in (429, 503)]
    return {"requests": len(answers), "answered": len(good), "refused": len(refused), "failed": len(failed),
            "failures": sorted({a.error for a in failed})[:5], "seconds": round(seconds, 3),
            "generated_tokens": sum(a.tokens for a in good),
            "tokens_per_s": round(sum(a.tokens for a in good) / seconds, 3),
            "prompt_tokens": sum(a.prompt for a in good), "cached_tokens": sum(a.cached for a in good),
            "first_token_s": percentiles([a.times[0] for a in good if a.times]), "between_tokens_s": percentiles(between),
            "end_s": percentiles([a.seconds for a in good])}


def shown(name, row):
    def times(key):
        return "  –" if not row[key] else " / ".join(f"{1000 * row[key][p]:.1f}" for p in ("p50", "p90", "p99"))
    print(f"{name}: {row['answered']} of {row['requests']} answered in {row['seconds']} s, {row['refused']} refused, "
          f"{row['failed']} failed; {row['tokens_per_s']} tokens/s; {row['cached_tokens']} of {row['prompt_tokens']} prompt tokens reused")
    print(f"  ms, p50 / p90 / p99: first token {times('first_token_s')}; between tokens {times('between_tokens_s')}; "
          f"to the end {times('end_s')}")
    for failure in row["failures"]:
        print(f"  failed: {failure}")


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--against")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--arrivals", type=float, default=0)
    parser.add_argument("--prompt", type=span, default=(8, 64))
    parser.add_argument("--answer", type=span, default=(4, 32))
    for share in ("repeat", "slow", "leave", "garbage"):
        parser.add_argument(f"--{share}", type=float, default=0)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--key", default="")
    parser.add_argument("--ids", type=int, default=256)
    parser.add_argument("--text")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


async def main(options):
    servers = [Server(url, options.key) for url in (options.url, options.against) if url]
    rows, wrong = {server.url: [] for server in servers}, 0
    for number in range(options.rounds):
        for server in servers:
            answers, seconds = await run(server, options, number)
            row = summary(answers, seconds)
            if options.check:
                row["different"] = await check(server, answers)
                wrong += row["different"]
            wrong += row["failed"]
            rows[server.url].append(row)
            if not options.json:
                shown(server.url, row)
    if options.json:
        print(json.dumps(rows))
    elif options.rounds > 1:
        for url, turns in rows.items():
            print(f"{url}: median of {len(turns)} rounds {statistics.median(t['tokens_per_s'] for t in turns)} tokens/s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(options_of(sys.argv[1:]))))
