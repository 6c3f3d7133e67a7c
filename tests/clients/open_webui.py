#!/usr/bin/env python3
"""The calls that Open WebUI makes, one after the other, against the real server with the bundled model.

    tests/clients/open_webui.py PROGRAM

They are written down here from what it sends to a server of OpenAI's API: the list of models, also while the model loads, and with each
question of a user the chat itself as a stream and, beside it, requests for a title, for tags and for questions that may follow, which do
not stream; a stop button, which closes the connection. Needs nothing but Python's library. Ends with 1 if something is wrong."""
import argparse
import concurrent.futures
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = os.path.join(ROOT, "models/fable-moe-18m")
KEY = "sk-open-webui"
HEADERS = {"Authorization": "Bearer " + KEY, "Content-Type": "application/json", "User-Agent": "Python/3.11 aiohttp/3.11",
           "X-OpenWebUI-User-Name": "Ada", "X-OpenWebUI-User-Id": "7", "X-OpenWebUI-Chat-Id": "c1"}
QUESTION = "Tell me of the fox who lived near the sea."
TASKS = {
    "title": "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n### Output:\nJSON format: "
             '{ "title": "your concise title here" }\n### Chat History:\n<chat_history>\nUSER: ' + QUESTION + "\n</chat_history>",
    "tags": "### Task:\nGenerate 1-3 broad tags categorizing the main themes of the chat history.\n### Output:\nJSON format: "
            '{ "tags": ["tag1", "tag2"] }\n### Chat History:\n<chat_history>\nUSER: ' + QUESTION + "\n</chat_history>",
    "follow-ups": "### Task:\nSuggest 3-5 relevant follow-up questions that the user might naturally ask next.\n### Output:\nJSON format: "
                  '{ "follow_ups": ["Question 1?"] }\n### Chat History:\n<chat_history>\nUSER: ' + QUESTION + "\n</chat_history>",
}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    def __init__(self, program):
        self.port = free_port()
        words = [program, "serve", MODEL, "--port", str(self.port), "--memory", "64MiB", "--chat-template", "chatml", "--api-key", KEY]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request(method, path, None if body is None else json.dumps(body), HEADERS)
        return connection, connection.getresponse()

    def json(self, method, path, body=None):
        connection, response = self.ask(method, path, body)
        text = response.read()
        connection.close()
        return response.status, json.loads(text)


def models_while_loading(server):
    """The list is there as soon as the port is, with the model's name, though nothing can be answered yet."""
    begin, loading = time.monotonic(), 0
    while True:
        try:
            status, listed = server.json("GET", "/v1/models")
        except OSError:
            assert time.monotonic() - begin < 30, "the port is not bound"
            continue
        assert status == 200 and [one["id"] for one in listed["data"]] == ["fable-moe-18m"], listed
        if listed["data"][0]["meta"] is not None:
            return f"{loading} lists while the model was loaded"
        loading += 1
        time.sleep(0.01)


def events_of(response):
    while line := response.readline():
        if line.startswith(b"data: "):
            yield line[6:].strip()


def chat(server, messages, **more):
    connection, response = server.ask("POST", "/v1/chat/completions", {
        "model": "fable-moe-18m", "messages": messages, "stream": True, "stream_options": {"include_usage": True}, "max_tokens": 60, **more})
    assert response.status == 200 and response.getheader("Content-Type").startswith("text/event-stream"), response.status
    text, ends, usage, last = "", [], None, None
    for last in events_of(response):
        if last == b"[DONE]":
            break
        chunk = json.loads(last)
        usage = chunk.get("usage") or usage
        for choice in chunk["choices"]:
            text += choice["delta"].get("content") or ""
            ends += [choice["finish_reason"]] if choice["finish_reason"] else []
    assert last == b"[DONE]" and len(ends) == 1 and usage["completion_tokens"] > 0, (last, ends, usage)
    connection.close()
    return text


def task(server, name):
    body = {"model": "fable-moe-18m", "messages": [{"role": "user", "content": TASKS[name]}], "stream": False, "max_completion_tokens": 50}
    status, answer = server.json("POST", "/v1/chat/completions", body)
    assert status == 200 and isinstance(answer["choices"][0]["message"]["content"], str), answer
    return name


def question_with_tasks(server):
    messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": QUESTION}]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        answer = pool.submit(chat, server, messages, temperature=0)
        names = [pool.submit(task, server, name) for name in TASKS]
        text = answer.result()
        assert text and {name.result() for name in names} == set(TASKS)
    # The next turn has the answer in its history, and the same text alone.
    assert chat(server, messages, temperature=0) == text, "the answer beside other requests differs from the one alone"
    follow = messages + [{"role": "assistant", "content": text}, {"role": "user", "content": "And then?"}]
    assert chat(server, follow)
    return f"{len(TASKS)} tasks beside a chat"


def stop_button(server):
    body = {"model": "fable-moe-18m", "messages": [{"role": "user", "content": QUESTION}], "stream": True, "ignore_eos": True}
    connection, response = server.ask("POST", "/v1/chat/completions", body)
    next(events_of(response))
    next(events_of(response))
    connection.sock.shutdown(socket.SHUT_RDWR)
    connection.close()
    begin = time.monotonic()
    while any(slot["is_processing"] for slot in server.json("GET", "/slots")[1]):
        assert time.monotonic() - begin < 1, "a stopped answer still runs after a second"
        time.sleep(0.01)
    return f"stopped within {1000 * (time.monotonic() - begin):.0f} ms"


def odd_fields(server):
    """What the program sends beside the API's own fields changes nothing."""
    body = {"model": "fable-moe-18m", "messages": [{"role": "user", "content": QUESTION, "timestamp": 7}], "max_tokens": 8, "temperature": 0,
            "user": "Ada", "metadata": {"chat_id": "c1"}, "tool_ids": [], "features": {"web_search": False}, "logit_bias": {}}
    status, answer = server.json("POST", "/v1/chat/completions", body)
    assert status == 200, answer
    return "fields of its own"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    server = Server(parser.parse_args().program)
    try:
        for step in (models_while_loading, question_with_tasks, odd_fields, stop_button):
            print(f"{step.__name__}: {step(server)}")
    finally:
        server.process.terminate()
    assert server.process.wait(60) == 0, "the server did not end as it should"


if __name__ == "__main__":
    sys.exit(main())
