#!/usr/bin/env python3
"""A server that speaks as `sluice serve` does and invents its answers: what the page is tested against and designed with.

    tests/page/mock_server.py [--port 8090] [--key KEY] [--base] [--device] [--slices] [--layers N] [--experts N] [--pace S]

The last message decides the answer: "think", "tool", "table", "slow", "long", "fail", "break", "flood N" are understood, and "exactly:"
gives back what follows. `POST /mock/NAME` moves the world for a test: `gap` leaves out an `experts` event, `quiet` 0|1 stops the idle
changes, `frozen` repeats the same `stats`, `set` [[i, state], …] sets states, `hidden` changes states without an event. Shapes are those of docs/page.md.
"""
import argparse
import base64
import hashlib
import json
import os
import queue
import random
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "serve", "page")
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
          "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'")
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".svg": "image/svg+xml"}
MIB = 1 << 20
STORY = ("The old miller opened the sluice before dawn, and the water went down to the wheel as it had done for forty years. "
         "He said nothing, for there was nothing to say; but his daughter, who had counted the stones of the weir, knew that one was gone. ")

MARKDOWN = """## How a sluice works

A **sluice** lets *just enough* water through. The gate does three things:

1. It holds back what is not needed yet.
2. It opens for the wheel that asks.
   - half, for a small wheel
   - fully, for a large one
3. It closes again, and the pond fills.

| gate | width | flow |
|:-----|:-----:|-----:|
| upper | 1.2 m | 340 l/s |
| lower | 0.8 m | 95 l/s |

> The pond is smaller than the river, and yet the wheel never stops.

```python
def flow(width, height, head):
    return 0.6 * width * height * (2 * 9.81 * head) ** 0.5
```

Read more at https://example.org/sluice, or keep `head` below 2 m.
"""


def cut(text, rng):
    """Pieces as tokens would be."""
    pieces, i = [], 0
    while i < len(text):
        n = rng.choice((1, 2, 3, 4, 5, 6))
        pieces.append(text[i:i + n])
        i += n
    return pieces


class Disconnected(Exception):
    pass


class World:
    """The engine that is not there: experts, accounts, counters, requests. One lock guards everything."""

    def __init__(self, flags):
        self.lock = threading.RLock()
        self.flags = flags
        self.rng = random.Random(7)
        self.layers, self.experts = flags.layers, flags.experts
        cells = self.layers * self.experts
        states = (5, 6, 0) if flags.slices else (4, 3, 2, 1, 0)
        weights = (3, 4, 3) if flags.slices else (3, 3, 1, 1, 4)
        self.state = [self.rng.choices(states, weights)[0] for _ in range(cells)]
        if flags.device:
            for i in range(cells):
                if self.rng.random() < 0.25:
                    self.state[i] |= self.rng.choice((3, 4) if flags.slices else (1, 2)) << 4
        self.heat = [0.0] * cells
        self.cooled = time.monotonic()
        self.uses = [0] * cells
        self.sequence = 100
        self.pending_set, self.pending_used = {}, set()
        self.skip = False
        self.frozen = None
        self.quiet = flags.quiet
        self.started = time.monotonic()
        self.counters = {"hits": 0, "accesses": 0, "demand": 0, "useful": 0, "late": 0, "wasted": 0}
        self.tokens = {"prefill": 0, "decode": 0}
        self.requests = {}
        self.subscribers = []
        self.last_stats = time.monotonic()
        self.answers = 0
        self.log = []
        self.budget = 64 * MIB if cells < 1000 else 8192 * MIB
        scale = self.budget / 64 / MIB
        self.planned = {"process": 9.4, "dense": 8.1, "experts": 31.5, "kv": 6.0, "activations": 2.2, "staging": 2.6, "tables": 0.9, "serve": 3.3}
        self.planned = {name: int(size * scale * MIB) for name, size in self.planned.items()}
        self.peak = {name: int(0.8 * size) for name, size in self.planned.items()}  # of a busier past

    def cool(self):
        now = time.monotonic()
        factor = 2 ** ((self.cooled - now) / 8)
        self.cooled = now
        self.heat = [value * factor for value in self.heat]

    def use(self, tokens=1):
        """One pass: every layer uses a few experts, some of which change their state."""
        with self.lock:
            states = (5, 6, 0) if self.flags.slices else (4, 3, 2, 1, 0)
            for layer in range(self.layers):
                for _ in range(min(self.experts, 4 * tokens)):
                    column = min(self.experts - 1, int(self.rng.expovariate(3.5) * self.experts)) * 7 % self.experts
                    i = layer * self.experts + column
                    self.heat[i] = min(255.0, self.heat[i] + 64)
                    self.uses[i] += 1
                    self.pending_used.add(i)
                    self.counters["accesses"] += 1
                    self.counters["demand"] += 1 + (len(self.requests) > 1) * (self.rng.random() < 0.4)
                    if self.state[i] & 15:
                        self.counters["hits"] += 1
                    elif self.rng.random() < 0.6:
                        self.counters[self.rng.choices(("useful", "late", "wasted"), (7, 2, 1))[0]] += 1
                    if self.rng.random() < 0.12:
                        self.set_state(i, (self.state[i] & 0xf0) | self.rng.choice(states))

    def set_state(self, i, state):
        with self.lock:
            self.state[i] = state
            self.pending_set[i] = state

    def snapshot(self):
        with self.lock:
            self.flush()
            self.cool()
            size = 294912 if self.budget < 1000 * MIB else 9437184
            sizes = {"F": size, "C": int(size * 0.66), "S": size // 2, "E": int(size * 0.16), "M": 0}
            device = {"full": size, "packed": int(size * 0.66)}
            if self.flags.slices:
                sizes = {"M": 0, "msb": size // 4, "msb+lsb": size // 2}
                device = {"msb": size // 4, "msb+lsb": size // 2}
            if self.flags.device:
                sizes["device"] = device
            return {"layers": self.layers, "experts": self.experts, "layer_ids": list(range(1, self.layers + 1)),
                    "tiers": ["host", "device"] if self.flags.device else ["host"], "states": "FCSEM", "sequence": self.sequence,
                    "state": base64.b64encode(bytes(self.state)).decode(),
                    "heat": base64.b64encode(bytes(int(value) for value in self.heat)).decode(),
                    "uses": base64.b64encode(struct.pack(f"<{len(self.uses)}I", *self.uses)).decode(),
                    "expert_bytes": sizes}

    def accounts(self, tier):
        if tier == "device":
            names = {"experts": int(3000 * MIB), "kv": int(500 * MIB), "activations": int(180 * MIB)}
            return {"budget": 4096 * MIB, "used": sum(names.values()), "limit": 0,
                    "by_name": {name: {"now": size, "peak": size, "planned": size} for name, size in names.items()}}
        full = {"process", "dense", "tables"}
        now = {name: size if name in full else int(size * (0.97 if name == "experts" else 0.35 + 0.1 * len(self.requests)))
               for name, size in self.planned.items()}
        for name, size in now.items():
            self.peak[name] = max(size, self.peak.get(name, 0))
        return {"budget": self.budget, "used": sum(now.values()), "limit": self.budget + 64 * MIB,
                "by_name": {name: {"now": now[name], "peak": self.peak[name], "planned": self.planned[name]} for name in now}}

    def memory(self):
        made = {"host": self.accounts("host")}
        if self.flags.device:
            made["device"] = self.accounts("device")
        return made

    def stats(self):
        with self.lock:
            now = time.monotonic()
            seconds = max(0.05, now - self.last_stats)
            self.last_stats = now
            speed = {name: round(count / seconds, 3) for name, count in self.tokens.items()}
            busy = self.tokens["decode"] + self.tokens["prefill"] > 0
            self.tokens = {"prefill": 0, "decode": 0}
            c = self.counters
            return {"t": round(now - self.started, 3), "tokens_per_s": speed,
                    "step_ms": {"wait": 96.2, "experts": 61.0, "attention": 9.5, "dense": 22.0, "sampling": 0.4},
                    "hits": c["hits"], "accesses": c["accesses"], "demand": c["demand"],
                    "prefetch": {"useful": c["useful"], "late": c["late"], "wasted": c["wasted"]},
                    "disk": {"bytes_per_s": int(self.rng.uniform(1.5e9, 2.1e9)) if busy else 0, "limit": 2400000000},
                    "memory": self.memory()}

    def plan(self):
        return {"budget": self.budget, "tokens": 8192, "by_name": self.planned,
                "dense": {"view": "packed", "why": "words would leave less room for experts"}, "minimum": self.budget // 3,
                "policies": {"preset": "zipmoe", "router": "exact", "cache": "zip-pools", "cache_scope": "layer", "scheduler": "alg2",
                             "prefetch": "stream", "placement": "host", "placement_prefill": None, "precision": "full", "constraint": "none"},
                "held": [{"parts": "words", "experts": self.layers * self.experts // 4, "bytes_each": 294912}],
                "memory": self.memory()}

    def hello(self):
        return {"version": "0.3.0", "model": self.flags.model, "chat": not self.flags.base,
                "limits": {"n_ctx": 8192, "parallel": 4, "queue": 64, "kv_tokens": 14336}}

    def publish(self, name, data):
        with self.lock:
            for subscriber in self.subscribers:
                subscriber.put((name, data))

    def flush(self):
        """Sends what has changed of the experts."""
        with self.lock:
            if not self.pending_set and not self.pending_used:
                return
            self.sequence += 1
            event = {"sequence": self.sequence, "set": [list(pair) for pair in self.pending_set.items()], "used": sorted(self.pending_used)}
            self.pending_set, self.pending_used = {}, set()
            if self.skip:
                self.skip = False
                return
            self.publish("experts", event)

    def changed_requests(self):
        with self.lock:
            self.publish("requests", [dict(request) for request in self.requests.values()])

    def run(self):
        ticks = 0
        while True:
            time.sleep(0.1)
            ticks += 1
            with self.lock:
                self.cool()
                if not self.quiet and not self.requests and ticks % 3 == 0 and self.flags.busy:
                    self.use()
                self.flush()
                if self.requests and ticks % 2 == 0:
                    self.changed_requests()
            if ticks % 5 == 0:
                self.publish("stats", self.frozen or self.stats())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "sluice/0.3.0"
    sys_version = ""

    @property
    def world(self):
        return self.server.world

    def log_message(self, format, *args):  # noqa: A002 (the name is the library's)
        pass

    def answer(self, status, body, kind="application/json", **headers):
        data = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        self.send_response(status)
        self.send_header("x-request-id", "req_" + "0" * 24)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def refuse(self, status, code, message, kind="invalid_request_error", param=None, **headers):
        self.answer(status, {"error": {"message": message, "type": kind, "param": param, "code": code}}, **headers)

    def allowed(self):
        key = self.server.flags.key
        if key is None or self.headers.get("Authorization") == f"Bearer {key}" or self.headers.get("x-api-key") == key:
            return True
        self.refuse(401, "invalid_api_key", "the key is missing or wrong", WWW_Authenticate="Bearer")
        return False

    def page(self, name):
        path = os.path.join(PAGE, name)
        ending = os.path.splitext(name)[1]
        if "/" in name or ending not in TYPES or not os.path.isfile(path):
            self.refuse(404, None, f"no such endpoint: GET {self.path}")
            return
        with open(path, "rb") as file:
            data = file.read()
        tag = '"' + hashlib.sha256(data).hexdigest()[:16] + '"'
        headers = {"ETag": tag, "Cache_Control": "no-cache", "Content_Security_Policy": POLICY, "X_Content_Type_Options": "nosniff",
                   "Referrer_Policy": "no-referrer", "Cross_Origin_Opener_Policy": "same-origin",
                   "Cross_Origin_Resource_Policy": "same-origin"}
        if self.headers.get("If-None-Match") == tag:
            self.answer(304, b"", TYPES[ending], **headers)
        else:
            self.answer(200, data, TYPES[ending], **headers)

    def do_GET(self):
        path = self.path.split("?")[0]
        world, flags = self.world, self.server.flags
        if path == "/":
            self.page("index.html")
        elif path.startswith("/ui/"):
            self.page(path[4:])
        elif path in ("/health", "/v1/health"):
            progress = (time.monotonic() - world.started) / max(flags.loading, 1e-9)
            if progress >= 1:
                self.answer(200, {"status": "ok"})
            else:
                self.answer(503, {"error": {"message": "the model is being loaded", "type": "server_error", "param": None, "code": "loading"},
                                  "status": "loading", "progress": round(progress, 2)}, Retry_After="1")
        elif not self.allowed():
            pass
        elif path != "/v1/models" and time.monotonic() - world.started < flags.loading:
            self.refuse(503, "loading", "the model is being loaded", "server_error", Retry_After="1")
        elif path == "/v1/models":
            entry = {"id": flags.model, "object": "model", "created": 1795440000, "owned_by": "sluice", "type": "model",
                     "display_name": flags.model, "created_at": "2026-11-23T17:20:00Z",
                     "meta": {"n_ctx": 8192, "n_ctx_train": 40960, "n_params": 17900000, "size": 35900000, "n_experts": world.experts,
                              "n_experts_used": 4, "architecture": "qwen2_moe", "family": "split"}}
            self.answer(200, {"object": "list", "data": [entry], "models": [entry], "has_more": False, "first_id": flags.model,
                              "last_id": flags.model})
        elif path == "/props":
            self.answer(200, {"default_generation_settings": {"n_ctx": 8192, "params": {}}, "total_slots": 4, "model_alias": flags.model,
                              "chat_template": "" if flags.base else "{{ messages }}", "chat_template_caps": {},
                              "modalities": {"vision": False, "audio": False}, "bos_token": "", "eos_token": "", "build_info": "mock"})
        elif path == "/slots":
            with world.lock:
                self.answer(200, [{"id": i, "id_task": i, "n_ctx": 8192, "is_processing": True, "state": request["state"],
                                   "n_prompt": request["prompt"], "n_cached": request["cached"], "n_decoded": request["generated"],
                                   "params": {}} for i, request in enumerate(world.requests.values())])
        elif path == "/v1/experts":
            self.answer(200, world.snapshot())
        elif path == "/v1/plan":
            self.answer(200, world.plan())
        elif path == "/events":
            self.events()
        elif path == "/mock/log":
            with world.lock:
                self.answer(200, world.log)
        elif path == "/mock/subscribers":
            self.answer(200, len(world.subscribers))
        else:
            self.refuse(404, None, f"no such endpoint: GET {path}")

    do_HEAD = do_GET

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path
        if path.startswith("/mock/"):
            self.move(path[6:], json.loads(body or b"null"))
        elif not self.allowed():
            pass
        elif path in ("/v1/chat/completions", "/v1/completions"):
            self.complete(json.loads(body), path == "/v1/chat/completions")
        else:
            self.refuse(404, None, f"no such endpoint: POST {path}")

    def move(self, name, data):
        world = self.world
        with world.lock:
            if name == "gap":
                world.flush()
                world.skip = True
                world.use()
                world.flush()
                world.use()
                world.flush()
            elif name == "frozen":
                world.frozen = world.stats() | {"tokens_per_s": {"prefill": 3, "decode": 7.5}}
                world.frozen["step_ms"] |= {"attention": 0, "sampling": 0}
            elif name == "quiet":
                world.quiet = bool(data)
            elif name == "set":
                for i, state in data:
                    world.set_state(i, state)
                world.flush()
            elif name == "hidden":
                for i, state in data:
                    world.state[i] = state
                world.sequence += 1
        self.answer(200, {})

    def head_of_stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Accel-Buffering", "no")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def send(self, text):
        try:
            self.wfile.write(text.encode())
            self.wfile.flush()
        except OSError as error:
            raise Disconnected from error

    def events(self):
        world = self.world
        box = queue.Queue()
        self.head_of_stream()
        with world.lock:
            box.put(("hello", world.hello()))
            box.put(("plan", world.plan()))
            box.put(("stats", world.stats()))
            box.put(("requests", [dict(request) for request in world.requests.values()]))
            world.subscribers.append(box)
        try:
            while True:
                try:
                    name, data = box.get(timeout=2)
                except queue.Empty:
                    self.send(": here\n\n")
                    continue
                self.send(f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n")
        except Disconnected:
            pass
        finally:
            with world.lock:
                world.subscribers.remove(box)

    # Answers

    def script(self, body, chat):
        """What the model says: (reasoning, content, calls, seconds a token)."""
        if not chat:
            return "", " " + STORY, [], self.server.flags.pace
        messages = body["messages"]
        last = messages[-1]
        text = last.get("content") or ""
        pace = self.server.flags.pace
        if last["role"] == "tool":
            return "", f"The tool says: **{text}**.", [], pace
        if text.startswith("exactly:"):
            return "", text[8:], [], pace
        if text.startswith("flood"):
            return "", STORY[:40], [], 0
        if "tool" in text and body.get("tools"):
            name = body["tools"][0]["function"]["name"]
            return "I should look.", "", [(name, '{"city": "Paris", "days": 3}')], pace
        if "slow" in text:
            return "", STORY * 40, [], 0.05
        if "long" in text:
            return "", (MARKDOWN + "\n" + STORY + "\n\n") * 8, [], pace
        if "think" in text:
            return "The miller asks how it works. A short list will do, and a table of the two gates.", MARKDOWN, [], pace
        if "table" in text:
            return "", MARKDOWN, [], pace
        rng = random.Random(body.get("seed") or self.world.answers)
        return "", STORY[:rng.randrange(60, len(STORY))].strip(), [], pace

    def complete(self, body, chat):
        world = self.world
        if chat and self.server.flags.base:
            self.refuse(400, "chat_template_missing", "this model has no chat template; --chat-template chatml gives it one")
            return
        text = json.dumps(body.get("messages", body.get("prompt")), ensure_ascii=False)
        prompt = max(4, len(text) // 4)
        if "refuse me" in text:
            self.refuse(400, "context_length_exceeded",
                        f"This model's maximum context length is 8192 tokens. However, your messages have {prompt + 8192}.", param="messages")
            return
        with world.lock:
            world.answers += 1
            world.log.append({name: value for name, value in body.items() if name != "messages"} | {"messages": len(body.get("messages", []))})
            world.log = world.log[-20:]
            key = f"{world.answers:x}"
        reasoning, content, calls, pace = self.script(body, chat)
        flood = chat and (body["messages"][-1].get("content") or "").startswith("flood")
        common = {"id": f"chatcmpl-{key}" if chat else f"cmpl-{key}", "object": "chat.completion.chunk" if chat else "text_completion",
                  "created": 1795440000, "model": body.get("model", ""), "system_fingerprint": "sluice-0.3-00000000"}
        limit = body.get("max_tokens", 10 ** 9)
        rng = random.Random(3)
        parts = ([("reasoning", piece) for piece in cut(reasoning, rng)] + [("content", piece) for piece in cut(content, rng)])
        finish = "tool_calls" if calls else "stop"
        if len(parts) > limit:
            parts, finish = parts[:limit], "length"
        cached = prompt // 2 if len(body.get("messages", [])) > 1 else 0
        request = {"id": key, "state": "queued", "prompt": prompt, "cached": cached, "done": cached, "generated": 0,
                   "max": 0 if limit == 10 ** 9 else limit}
        if not body.get("stream"):
            self.whole(body, chat, common, parts, calls, prompt, cached, finish)
            return
        with world.lock:
            world.requests[key] = request
        began = time.monotonic()
        try:
            self.head_of_stream()
            self.stream(body, chat, common, parts, calls, request, pace, finish, flood, text, began)
        except Disconnected:
            pass
        finally:
            with world.lock:
                world.requests.pop(key, None)
                world.changed_requests()

    def ends(self, prompt, cached, number, first, total):
        new = prompt - cached
        decode = max(0.1, 1000 * (total - first))
        timings = {"cache_n": cached, "prompt_n": new, "prompt_ms": round(1000 * first, 1), "prompt_per_token_ms": round(1000 * first / max(1, new), 3),
                   "prompt_per_second": round(new / max(first, 1e-3), 3), "predicted_n": number, "predicted_ms": round(decode, 1),
                   "predicted_per_token_ms": round(decode / max(1, number - 1), 3), "predicted_per_second": round(max(1, number - 1) * 1000 / decode, 3)}
        sluice = {"queue_ms": 3.2, "stalled_ms": 0.0, "batch_mean": 1.0, "accesses": 24 * number, "hits": 17 * number, "misses": 7 * number,
                  "bytes_read": 7 * number * 294912}
        usage = {"prompt_tokens": prompt, "completion_tokens": number, "total_tokens": prompt + number,
                 "prompt_tokens_details": {"cached_tokens": cached}, "completion_tokens_details": {"reasoning_tokens": 0}}
        return timings, sluice, usage

    def whole(self, body, chat, common, parts, calls, prompt, cached, finish):
        timings, sluice, usage = self.ends(prompt, cached, len(parts), 0.01, 0.02)
        content = "".join(piece for kind, piece in parts if kind == "content")
        if chat:
            message = {"role": "assistant", "content": content or None, "refusal": None}
            choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        else:
            choice = {"index": 0, "text": content, "logprobs": None, "finish_reason": finish}
        self.answer(200, common | {"object": "chat.completion" if chat else "text_completion", "choices": [choice], "usage": usage,
                                   "timings": timings, "sluice": sluice})

    def stream(self, body, chat, common, parts, calls, request, pace, finish, flood, text, began):
        world = self.world
        with_usage = (body.get("stream_options") or {}).get("include_usage")

        def chunk(choices, **more):
            event = common | {"choices": choices} | ({"usage": None} if with_usage else {}) | more
            self.send(f"data: {json.dumps(event, ensure_ascii=False, separators=(',', ':'))}\n\n")

        def delta(members, reason=None, **more):
            if chat:
                chunk([{"index": 0, "delta": members, "logprobs": None, "finish_reason": reason}], **more)
            else:
                chunk([{"index": 0, "text": members.get("content", ""), "logprobs": None, "finish_reason": reason}], **more)

        if chat:
            delta({"role": "assistant", "content": ""})
        else:
            self.send(": waiting 1 of 1\n\n")
        request["state"] = "prefill"
        if not flood:
            for step in range(4):
                request["done"] = request["cached"] + (request["prompt"] - request["cached"]) * (step + 1) // 4
                if body.get("return_progress"):
                    chunk([], prompt_progress={"total": request["prompt"], "cache": request["cached"], "processed": request["done"], "time_ms": step})
                world.tokens["prefill"] += request["prompt"] // 4
                if not world.quiet or step == 0:
                    world.use(3)
                time.sleep(pace * 4)
        request["state"] = "decode"
        first = time.monotonic() - began
        for n, (kind, piece) in enumerate(parts):
            if kind == "reasoning":
                delta({"reasoning_content": piece, "reasoning": piece})
            else:
                delta({"content": piece})
            request["generated"] = n + 1
            world.tokens["decode"] += 1
            if not flood and n % 4 == 0:
                world.use()
            if n == 5 and "fail" in text:
                self.send('data: {"error":{"message":"expert 3 of layer 7: cannot read at byte 1048576","type":"server_error","param":null,"code":null}}\n\n')
                return
            if n == 5 and "break" in text:
                return
            if pace > 0:
                time.sleep(pace)
        for index, (name, arguments) in enumerate(calls):
            delta({"tool_calls": [{"index": index, "id": f"call_{index}aZ3k", "type": "function", "function": {"name": name, "arguments": ""}}]})
            for piece in cut(arguments, random.Random(1)):
                delta({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        timings, sluice, usage = self.ends(request["prompt"], request["cached"], len(parts), first, time.monotonic() - began)
        delta({}, finish, timings=timings, sluice=sluice)
        if with_usage:
            chunk([], usage=usage)
        self.send("data: [DONE]\n\n")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, flags):
        super().__init__(("127.0.0.1", flags.port), Handler)
        self.flags = flags
        self.world = World(flags)
        threading.Thread(target=self.world.run, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # a browser that goes away


def parse(arguments=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8090)
    parser.add_argument("--key")
    parser.add_argument("--base", action="store_true", help="a model without chat template")
    parser.add_argument("--device", action="store_true")
    parser.add_argument("--slices", action="store_true")
    parser.add_argument("--busy", action="store_true", help="experts change also without requests")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--loading", type=float, default=0, help="seconds until the model is loaded")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--experts", type=int, default=32)
    parser.add_argument("--pace", type=float, default=0.01, help="seconds a token")
    parser.add_argument("--model", default="fable-moe-18m")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    Server(parse()).serve_forever()
