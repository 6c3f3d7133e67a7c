#!/usr/bin/env python3
"""Requests by curl against the real server with the bundled model, and the shapes of their answers, as transcripts.txt has them.

    tests/clients/curl_transcripts.py PROGRAM [--write]

Through `curl --no-buffer`, directly and through an HTTP proxy that is started here. A transcript is a line `$ PATH [BODY]`, the status and
type of the answer, and its shape: members in their order, with numbers as 0, and strings that differ from run to run as `…`; events that
look alike and follow each other are one line. --write writes the file again. Needs curl and Python's library. Ends with 1 if
something differs."""
import argparse
import http.client
import http.server
import json
import os
import subprocess
import sys
import threading

from real_server import Server

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "transcripts.txt")
# Strings that say what a thing is; others are some text.
KEPT = {"object", "role", "finish_reason", "type", "code", "param", "owned_by", "stop_reason", "status", "architecture", "family", "state",
        "tokenizer_class"}


def shape(value, key=""):
    if isinstance(value, dict) and key == "top_logprobs" and "token" not in value:
        return {"…": 0}  # by tokens, whatever they are
    if isinstance(value, dict):
        return {name: shape(one, name) for name, one in value.items()}
    if isinstance(value, list):
        shapes = [shape(one, key) for one in value]
        return [one for i, one in enumerate(shapes) if i == 0 or one != shapes[i - 1]]
    if isinstance(value, bool) or value is None:
        return value
    return value if isinstance(value, str) and key in KEPT else "…" if isinstance(value, str) else 0


def line_of(text):
    return json.dumps(shape(json.loads(text)), ensure_ascii=False, separators=(",", ":"))


def shown(body, kind):
    if kind.startswith("text/event-stream"):
        lines = []
        for line in body.splitlines():
            if line.startswith("data: ") and line != "data: [DONE]":
                line = "data: " + line_of(line[6:])
            if line and not line.startswith(":"):
                lines += [] if lines and lines[-1] == line else [line]
        return lines
    return [line_of(body)] if kind == "application/json" else []


class Proxy(http.server.BaseHTTPRequestHandler):
    """As plain a proxy as there is: it passes on what comes as it comes."""
    protocol_version = "HTTP/1.1"

    def pass_on(self):
        host, path = self.path.removeprefix("http://").split("/", 1)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        onward = http.client.HTTPConnection(host)
        onward.request(self.command, "/" + path, body or None, {"Host": self.headers["Host"], "Content-Type": "application/json"})
        answer = onward.getresponse()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.getheader("Content-Type", ""))
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while piece := answer.read1(1 << 16):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = pass_on

    def log_message(self, *_):
        pass


def curl(url, command, proxy):
    path, _, body = command.partition(" ")
    words = ["curl", "--silent", "--show-error", "--no-buffer", "--max-time", "120", "--noproxy", "" if proxy else "*", "--write-out",
             "\n%{http_code} %{content_type}"]
    words += ["--proxy", proxy] if proxy else []
    words += ["--data-binary", body] if body else []
    out = subprocess.run([*words, url + path], stdout=subprocess.PIPE, check=True).stdout.decode()
    answer, _, facts = out.rpartition("\n")
    status, _, kind = facts.partition(" ")
    return [f"{status} {kind}", *shown(answer, kind)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with open(FILE, encoding="utf-8") as file:
        blocks = [block.split("\n") for block in file.read().strip().split("\n\n")]
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    wrong, written = 0, []
    with Server(options.program) as server:
        for command, *expected in blocks:
            for way in ("", f"http://127.0.0.1:{proxy.server_port}"):
                found = curl(server.url, command.removeprefix("$ "), way)
                if not options.write and found != expected:
                    wrong += 1
                    print(f"{command}{' through a proxy' if way else ''}\nexpected:\n  " + "\n  ".join(expected) + "\nfound:\n  " + "\n  ".join(found))
            written.append("\n".join([command, *found]))
    if options.write:
        with open(FILE, "w", encoding="utf-8") as file:
            file.write("\n\n".join(written) + "\n")
    print(f"{len(blocks)} transcripts, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
