#!/usr/bin/env python3
"""Tests of the page in a browser (docs/page.md, "Tests").

    python3 -m venv VENV && VENV/bin/pip install playwright
    VENV/bin/python tests/page/test_page.py [--url URL [--key KEY]] [--shots FOLDER] [--only WORD] [--picture FILE]

Drives Debian's chromium. Without --url, servers of invented answers are started (mock_server.py); with it, the tests that need such a
server are left out, and named. A test fails as well if the page writes an error to the console, breaks its security policy, or asks
another host for anything. Prints a line for each test, and fails if one of them failed.
"""
import argparse
import base64
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.request

from playwright.sync_api import sync_playwright

import markdown_cases

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "..", "..", "src", "serve", "page")
TESTS = []

WATCH = """
window.violations = [];
document.addEventListener('securitypolicyviolation', (e) => violations.push(`${e.violatedDirective} ${e.blockedURI} ${e.sourceFile}`));
"""

SERIALISE = """
(node) => {
  const escape = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;');
  const walk = (node) => {
    if (node.nodeType === 3) return escape(node.data);
    const inner = () => [...node.childNodes].map(walk).join('');
    if (node.nodeType === 11) return inner();
    const tag = node.tagName.toLowerCase();
    if (node.className === 'code') {
      return `<pre lang="${node.querySelector('.code-head span')?.textContent}">${escape(node.querySelector('pre').textContent)}</pre>`;
    }
    if (/^h[1-6]$/.test(node.className)) return `<${node.className}>${inner()}</${node.className}>`;
    if (node.className === 'table' || tag === 'thead' || tag === 'tbody') return inner();
    const shown = {a: ['href', 'rel', 'target'], ol: ['start'], th: ['class'], td: ['class']}[tag] ?? [];
    const attributes = shown.filter((name) => node.hasAttribute(name)).map((name) => ` ${name}="${node.getAttribute(name)}"`).join('');
    return tag === 'br' || tag === 'hr' ? `<${tag}>` : `<${tag}${attributes}>${inner()}</${tag}>`;
  };
  return walk(node);
}
"""


def test(function):
    TESTS.append(function)
    function.needs = ()
    return function


def mock(*arguments):
    """A test that needs a server of invented answers, started with these flags."""
    def mark(function):
        TESTS.append(function)
        function.needs = ("--pace", "0.004", *arguments)
        return function
    return mark


def check(condition, *words):
    if not condition:
        raise AssertionError(" ".join(str(word) for word in words))


def equal(found, expected, what):
    check(found == expected, f"{what}: expected {expected!r}, found {found!r}")


def until(condition, what, seconds=10.0, page=None):
    """Waits for `condition`; with `page` its events are taken meanwhile."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        page.wait_for_timeout(50) if page else time.sleep(0.05)
    raise AssertionError(f"waited {seconds} s in vain: {what}")


def wait_for(page, expression, seconds=15.0):
    """As Playwright's wait_for_function, which the page's policy forbids: it compiles its expression in the page."""
    return until(lambda: page.evaluate(expression), expression, seconds, page)


class Mock:
    def __init__(self, *arguments, port=None):
        if port is None:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
        self.port, self.arguments = port, arguments
        self.url = f"http://127.0.0.1:{port}/"
        self.start()

    def start(self):
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "mock_server.py"), "--port", str(self.port), *self.arguments])
        until(self.answers, "the server of invented answers starts")

    def answers(self):
        try:
            return urllib.request.urlopen(self.url + "health", timeout=1).status == 200
        except urllib.error.HTTPError:
            return True  # it is loading
        except OSError:
            return False

    def stop(self):
        self.process.kill()
        self.process.wait()


class Context:
    """What a test gets: a server, and pages in a fresh profile."""

    def __init__(self, flags, browser, url):
        self.flags, self.browser, self.url = flags, browser, url
        self.key = flags.key
        self.faults, self.contexts = [], []
        self.expected = re.compile("$^")  # console errors that belong to the test

    def api(self, path, body=None, key=None):
        request = urllib.request.Request(self.url + path.lstrip("/"), None if body is None else json.dumps(body).encode())
        if key or self.key:
            request.add_header("Authorization", f"Bearer {key or self.key}")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def profile(self, **options):
        options.setdefault("viewport", {"width": 1280, "height": 800})
        context = self.browser.new_context(**options)
        context.add_init_script(WATCH)
        if self.key:
            context.add_init_script(f"sessionStorage.setItem('sluice.key', {json.dumps(self.key)})")
        self.contexts.append(context)
        return context

    def page(self, view="", profile=None, ready=True, **options):
        page = (profile or self.profile(**options)).new_page()
        page.set_default_timeout(15000)
        own = self.url.rstrip("/")

        def console(message):
            if message.type in ("error", "warning") and "willReadFrequently" not in message.text and not self.expected.search(message.text):
                self.faults.append(f"console: {message.text}")

        page.on("console", console)
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("request", lambda request: request.url.startswith((own, "blob:", "data:")) or self.faults.append(f"asks {request.url}"))
        page.goto(self.url + (f"#{view}" if view else ""))
        if ready:
            page.wait_for_selector("#state[data-state=open]")
            wait_for(page, "document.querySelector('#question, #text') !== null")
        return page

    def finish(self):
        for context in self.contexts:
            for page in context.pages:
                if not page.is_closed():
                    self.faults += [f"policy: {text}" for text in page.evaluate("window.violations ?? []")]
            context.close()
        check(not self.faults, "; ".join(sorted(set(self.faults))[:5]))


def ask(page, text, wait=True):
    page.fill("#question", text)
    page.press("#question", "Enter")
    if wait:
        page.wait_for_selector(".act:not(.stop)")
        wait_for(page, "document.querySelector('.message.assistant:last-child')?.getAttribute('aria-busy') === 'false'")


def stored(page):
    """Conversations as they lie in the browser, newest first."""
    return page.evaluate("""Object.keys(localStorage).filter((key) => key.startsWith('sluice.conversation.'))
        .map((key) => JSON.parse(localStorage.getItem(key))).sort((a, b) => b.updated - a.updated)""")


def last_answer(page):
    return [message for message in stored(page)[0]["messages"] if message["role"] == "assistant"][-1]


# Loading

@test
def loads_without_an_error(context):
    page = context.page()
    for view in ("experts", "run", "chat"):
        page.click(f".tabs a[data-view={view}]")
        page.wait_for_selector(f"#view-{view}:not([hidden])")
    page.wait_for_timeout(500)


@test
def has_a_policy_that_holds(context):
    context.expected = re.compile("Content Security Policy|TrustedHTML|Refused|violates|requires 'Trusted")
    page = context.page()
    found = page.evaluate("""() => {
      const script = document.createElement('script');
      let thrown = '';
      try { script.textContent = 'window.ran = true'; document.body.append(script); } catch (error) { thrown = error.name; }
      try { document.createElement('div').innerHTML = '<p>'; } catch (error) { thrown += error.name; }
      return [window.ran ?? false, thrown];
    }""")
    equal(found[0], False, "a script in the page ran")
    check("TypeError" in found[1], "innerHTML of a string was taken:", found[1])
    until(lambda: page.evaluate("violations.length") > 0, "the break of the policy is reported")
    page.evaluate("violations.length = 0")


@mock()
def is_small(context):
    names = [name for name in os.listdir(PAGE) if not name.endswith((".h", ".cc"))]
    size = sum(os.path.getsize(os.path.join(PAGE, name)) for name in names)
    check(size < 200 * 1000, f"{size} bytes")
    for name in names:
        check(re.fullmatch(r"[a-z_]+\.(html|js|css|svg)", name), name)
        with open(os.path.join(PAGE, name), encoding="utf-8") as file:
            text = file.read()
        check("innerHTML" not in text and "eval(" not in text and not re.search(r"https?://(?!www\.w3\.org)[a-z]", text), name)


# Chat

@test
def a_chat_streams_and_equals_the_api(context):
    page = context.page()
    page.click("button[aria-label=Settings]")
    for name, value in (("temperature", "0"), ("seed", "7"), ("max_tokens", "48")):
        page.fill(f"#set-{name}", value)
    page.click("dialog button.primary")
    page.evaluate("""() => {
      window.lengths = new Set();
      new MutationObserver(() => lengths.add(document.querySelector('.message.assistant .body')?.textContent.length ?? 0))
        .observe(document.querySelector('.log'), {subtree: true, childList: true, characterData: true});
    }""")
    ask(page, "Tell me of the old king")
    answer = last_answer(page)
    model = context.api("v1/models")["data"][0]["id"]
    whole = context.api("v1/chat/completions", {"model": model, "messages": [{"role": "user", "content": "Tell me of the old king"}],
                                                "temperature": 0, "seed": 7, "max_tokens": 48})
    equal(answer["content"], whole["choices"][0]["message"]["content"] or "", "text of the stream")
    check(page.evaluate("lengths.size") >= 3, "the text did not come bit by bit")
    check(re.search(r"tok/s", page.inner_text(".statistics")), "no statistics")
    check("Context: " in page.inner_text(".context"), "no context")
    shown = page.evaluate(f"""async () => {{
      const {{markdown}} = await import('/ui/markdown.js');
      return ({SERIALISE})(markdown({json.dumps(answer["content"])})) === ({SERIALISE})(document.querySelector('.body'))
        .replace(/^<div>|<.div>$/g, ''); }}""")
    check(shown, "the nodes of the stream are not those of the whole text")


@test
def stop_ends_the_request(context):
    page = context.page()
    for by in ("key", "button"):
        ask(page, "slow: tell a long story", wait=False)
        wait_for(page, "document.querySelector('.message.assistant:last-child .body')?.textContent.length > 5")
        check([slot for slot in context.api("slots") if slot["is_processing"]], "no slot is busy")
        page.keyboard.press("Escape") if by == "key" else page.click(".act.stop")
        until(lambda: not [slot for slot in context.api("slots") if slot["is_processing"]], f"no slot is busy after a stop by {by}", 1.0)
        page.wait_for_selector(".act:not(.stop)")
        check("stopped" in page.inner_text(".message.assistant:last-child .statistics"), "the answer does not say that it was stopped")
        check(last_answer(page)["content"] != "", "what came was not kept")


@test
def reload_keeps_conversations(context):
    page = context.page()
    ask(page, "What is a weir?")
    ask(page, "And a mill?")
    page.click("text=New conversation")
    ask(page, "A third question")
    before = page.locator(".conversations li").count()
    page.reload()
    page.wait_for_selector(".message.assistant")
    equal(page.locator(".conversations li").count(), before, "conversations after reload")
    equal(page.locator(".message.user .text").all_inner_texts(), ["A third question"], "the open conversation")
    page.click(".conversations li:not(.current) .open")
    equal(page.locator(".message.user .text").all_inner_texts(), ["What is a weir?", "And a mill?"], "the other one")


@test
def branches_and_regenerate(context):
    page = context.page()
    ask(page, "First version")
    page.click(".message.user button:has-text('Edit')")
    page.fill(".edit", "Second version")
    page.press(".edit", "Enter")
    wait_for(page, "document.querySelector('.message.user .text')?.textContent === 'Second version'")
    page.wait_for_selector(".message.assistant .statistics:not([hidden])")
    equal(page.inner_text(".message.user .branches span"), "2/2", "branches")
    page.click(".message.user button[aria-label='Earlier version']")
    equal(page.inner_text(".message.user .text"), "First version", "the earlier branch")
    page.click("button:has-text('Regenerate')")
    page.wait_for_selector(".message.assistant .branches")
    wait_for(page, "document.querySelector('.message.assistant').getAttribute('aria-busy') === 'false'")
    equal(page.inner_text(".message.assistant .branches span"), "2/2", "branches of the answer")
    equal(len(stored(page)[0]["messages"]), 5, "messages of all branches")
    page.reload()
    page.wait_for_selector(".message.user")
    equal(page.inner_text(".message.user .text"), "First version", "the branch after reload")


@test
def export_and_import(context):
    page = context.page()
    ask(page, "Remember the heron")
    with page.expect_download() as download:
        page.click("text=Export")
    path = os.path.join(tempfile.mkdtemp(), "export.json")
    download.value.save_as(path)
    with open(path, encoding="utf-8") as file:
        kept = json.load(file)
    equal(kept["conversations"], stored(page), "the file")
    other = context.page()
    equal(other.locator(".conversations .open").count(), 0, "conversations of a fresh profile")
    other.set_input_files("input[type=file]", path)
    other.wait_for_selector(".conversations .open")
    equal(stored(other), kept["conversations"], "conversations after import")
    other.set_input_files("input[type=file]", {"name": "x.json", "mimeType": "application/json", "buffer": b'{"format":"other"}'})
    other.wait_for_selector("#toasts:has-text('not an export')")
    equal(len(stored(other)), 1, "conversations after a refused file")


@test
def delete_and_undo(context):
    page = context.page()
    ask(page, "To be deleted")
    page.hover(".conversations li")
    page.click(".conversations li button[aria-label^=Delete]")
    page.wait_for_selector(".conversations li.none")
    page.click("#toasts button")
    page.wait_for_selector(".conversations .open")
    equal(page.inner_text(".message.user .text"), "To be deleted", "the conversation that came back")


@test
def keys_of_the_composer(context):
    page = context.page()
    page.focus("#question")
    page.keyboard.type("one")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("two")
    equal(page.input_value("#question"), "one\ntwo", "text after Shift+Enter")
    page.keyboard.press("Enter")
    page.wait_for_selector(".message.user")
    equal(page.inner_text(".message.user .text"), "one\ntwo", "the question")
    equal(page.input_value("#question"), "", "the box after sending")
    page.keyboard.press("Escape")


@mock()
def settings_reach_the_server(context):
    page = context.page()
    page.click("button[aria-label=Settings]")
    for name, value in (("temperature", "0.3"), ("top_p", "0.9"), ("top_k", "40"), ("seed", "11"), ("max_tokens", "9"), ("system", "Be brief.")):
        page.fill(f"#set-{name}", value)
    page.select_option("#set-thinking", "off")
    page.click("dialog button.primary")
    page.reload()
    ask(page, "table, please")
    sent = context.api("mock/log")[-1]
    expected = {"temperature": 0.3, "top_p": 0.9, "top_k": 40, "seed": 11, "max_tokens": 9, "messages": 2, "stream": True,
                "chat_template_kwargs": {"enable_thinking": False}, "stream_options": {"include_usage": True}, "return_progress": True,
                "model": "fable-moe-18m"}
    equal(sent, expected, "the request")
    check("most tokens reached" in page.inner_text(".statistics"), "the answer does not say that it was cut")


@mock()
def reasoning_is_folded_and_dimmed(context):
    page = context.page()
    ask(page, "think about it")
    equal(page.evaluate("document.querySelector('.reasoning').open"), False, "the reasoning is open")
    check("Reasoning, 18 words" in page.inner_text(".reasoning summary"), page.inner_text(".reasoning summary"))
    colours = page.evaluate("['.reasoning', '.body'].map((s) => getComputedStyle(document.querySelector(s)).color)")
    check(colours[0] != colours[1], "the reasoning is not dimmed")
    page.click(".reasoning summary")
    check("miller" in page.inner_text(".reasoning-text"), "no reasoning")


@mock()
def tool_calls_are_cards(context):
    page = context.page()
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]
    page.click("button[aria-label=Settings]")
    page.click("dialog summary")
    page.fill("#set-tools", json.dumps(tools))
    page.click("dialog button.primary")
    ask(page, "use the tool")
    equal(page.inner_text(".card .card-name"), "get_weather", "name of the card")
    equal(json.loads(page.inner_text(".card code")), {"city": "Paris", "days": 3}, "arguments")
    page.fill(".card textarea", "sunny")
    page.click(".card button")
    page.wait_for_selector(".message.tool")
    page.wait_for_selector(".body:has-text('The tool says: sunny')")
    equal(page.inner_text(".message.tool pre"), "sunny", "the result")


@mock()
def failures_are_told(context):
    context.expected = re.compile("400|INCOMPLETE|Failed to load")
    page = context.page()
    for question, words in (("fail", "cannot read at byte 1048576"), ("break", "ended before the answer"), ("refuse me", "maximum context length")):
        ask(page, question)
        check(words in page.inner_text(".message.assistant:last-child .fault"), page.inner_text(".message.assistant:last-child .fault"))
        equal(page.get_attribute(".message.assistant:last-child .fault", "role"), "alert", "role of the error")
        page.click("text=New conversation")


@mock()
def a_finished_answer_is_announced_once(context):
    page = context.page()
    page.evaluate("""() => {
      window.said = [];
      new MutationObserver(() => { const text = document.getElementById('announcer').textContent; if (text) said.push(text); })
        .observe(document.getElementById('announcer'), {childList: true});
    }""")
    ask(page, "table")
    page.wait_for_timeout(300)
    said = page.evaluate("said")
    equal(len(said), 1, f"announcements {said}")
    check(said[0].startswith("The answer is finished: ## How a sluice works"), said[0])
    equal(page.evaluate("document.querySelectorAll('[aria-live=polite], [role=status]').length"), 3, "live regions")


@mock("--base")
def base_models_get_a_completion_box(context):
    page = context.page(ready=False)
    page.fill("#text", "Once upon a time")
    page.keyboard.press("Control+Enter")
    wait_for(page, "document.querySelector('#text').value.length > 60 && !document.querySelector('#text').readOnly")
    check("tok/s" in page.inner_text(".statistics"), "no statistics")
    text = page.input_value("#text")
    equal(text, "Once upon a time" + context.api("v1/completions", {"prompt": "Once upon a time", "max_tokens": 128})["choices"][0]["text"], "text")
    page.click("text=Undo")
    equal(page.input_value("#text"), "Once upon a time", "text after undo")
    equal(context.api("mock/log")[-2]["prompt"], "Once upon a time", "the prompt")
    page.reload()
    page.wait_for_selector("#text")
    equal(page.input_value("#text"), "Once upon a time", "text after reload")


# Markdown

@test
def markdown_table_of_cases(context):
    page = context.page()
    wrong = page.evaluate("""async ([cases, serialise]) => {
      const {markdown, GrowingMarkdown} = await import('/ui/markdown.js');
      const walk = (0, SERIALISE);
      const wrong = [];
      for (const [text, expected] of cases) {
        const found = walk(markdown(text));
        if (found !== expected) wrong.push(`${JSON.stringify(text)}: expected ${expected}, found ${found}`);
        const place = document.createElement('div');
        const growing = new GrowingMarkdown(place);
        for (let n = 1; n <= text.length; n += 1) {
          growing.set(text.slice(0, n));
          const whole = walk(markdown(text.slice(0, n)));
          const grown = [...place.childNodes].map(walk).join('');
          if (whole !== grown) { wrong.push(`${JSON.stringify(text.slice(0, n))} grown: ${grown}, at once: ${whole}`); break; }
        }
      }
      return wrong;
    }""".replace("SERIALISE", SERIALISE), [markdown_cases.CASES, ""])
    equal(len(markdown_cases.CASES), 64, "cases")
    check(not wrong, f"{len(wrong)} wrong\n    " + "\n    ".join(wrong[:12]))
    equal(page.evaluate("document.querySelectorAll('main img, main script').length"), 0, "images and scripts in the page")


@test
def growing_text_is_the_whole_text(context):
    """Random joins of the cases, cut at random places: seeds are printed with a failure."""
    page = context.page()
    wrong = page.evaluate("""async (texts) => {
      const {markdown, GrowingMarkdown} = await import('/ui/markdown.js');
      const walk = (0, SERIALISE);
      for (let seed = 1; seed <= 150; seed += 1) {
        let x = seed;
        const random = (n) => { x = (x * 48271) % 2147483647; return x % n; };
        let text = '';
        for (let k = 0; k < 6; k += 1) text += texts[random(texts.length)] + '\\n'.repeat(random(3));
        const place = document.createElement('div');
        const growing = new GrowingMarkdown(place);
        for (let n = 0; n < text.length; n += 1 + random(25)) growing.set(text.slice(0, n));
        growing.set(text);
        if ([...place.childNodes].map(walk).join('') !== walk(markdown(text))) return `seed ${seed}: ${JSON.stringify(text)}`;
      }
      return '';
    }""".replace("SERIALISE", SERIALISE), [text for text, _ in markdown_cases.CASES])
    equal(wrong, "", "the text")


@test
def markdown_takes_no_long_time(context):
    page = context.page()
    slow = page.evaluate("""async (texts) => {
      const {markdown} = await import('/ui/markdown.js');
      markdown(Object.values(texts)[0].repeat(100));
      const slow = {};
      for (const [name, piece] of Object.entries(texts)) {
        const text = piece.repeat(Math.ceil(100000 / piece.length)).slice(0, 100000);
        let best = Infinity;
        for (let k = 0; k < 5 && best >= 100; k += 1) {
          const from = performance.now();
          markdown(text);
          best = Math.min(best, performance.now() - from);
        }
        if (best >= 100) slow[name] = Math.round(best);
      }
      return slow;
    }""", markdown_cases.HOSTILE)
    equal(slow, {}, "milliseconds of texts of 100,000 characters")


# Experts

def colours(theme):
    """The colours of the style sheet, read without a browser: {name: (r, g, b)}."""
    with open(os.path.join(PAGE, "page.css"), encoding="utf-8") as file:
        pairs = re.findall(r"--([\w-]+): light-dark\(#([0-9a-f]{6}), #([0-9a-f]{6})\)", file.read())
    return {name: tuple(bytes.fromhex(dark if theme == "dark" else light)) for name, light, dark in pairs}


SAMPLES = """() => {
  const canvas = document.getElementById('map');
  const context = canvas.getContext('2d');
  const image = context.getImageData(0, 0, canvas.width, canvas.height);
  const pitch = Number(canvas.dataset.pitch);
  const outer = pitch - (pitch >= 12 && !DEVICE ? 2 : 1);
  const at = (x, y) => [...image.data.slice(4 * (y * canvas.width + x), 4 * (y * canvas.width + x) + 3)];
  const cells = [];
  for (let y = 0; y < canvas.height; y += pitch) for (let x = 0; x < canvas.width; x += pitch) {
    const q = (share) => Math.floor(share * (outer - 1));
    cells.push({left: at(x + q(0.25), y + q(0.3)), right: at(x + q(0.75), y + q(0.3)), middle: at(x + q(0.5), y + q(0.3)),
      below: at(x + q(0.25), y + q(0.75)), across: at(x + q(0.25), y + q(0.5)), corner: at(x, y), top: at(x + q(0.5), y), side: at(x, y + q(0.5)),
      gap: at(x + pitch - 1, y + pitch - 1)});
  }
  return cells;
}"""


def share_between(colour, cold, hot):
    """How far `colour` lies from cold to hot, or None if it does not lie between."""
    channel = max(range(3), key=lambda k: abs(hot[k] - cold[k]))
    share = (colour[channel] - cold[channel]) / (hot[channel] - cold[channel])
    near = all(abs(cold[k] + share * (hot[k] - cold[k]) - colour[k]) <= 2 for k in range(3))
    return share if near and -0.02 <= share <= 1.02 else None


def check_cells(page, snapshot, theme):
    palette = colours(theme)
    states = base64.b64decode(snapshot["state"])
    heats = base64.b64decode(snapshot["heat"])
    cells = page.evaluate(SAMPLES.replace("DEVICE", json.dumps("device" in snapshot["tiers"])))
    if page.get_attribute("#map", "data-transposed") == "true":
        cells = [cells[e * snapshot["layers"] + layer] for layer in range(snapshot["layers"]) for e in range(snapshot["experts"])]
    equal(len(cells), len(states), "cells on the canvas")
    filled = {4: ("left", "middle", "right", "below", "across"), 3: ("left", "right", "below"), 2: ("left", "below"), 1: ("right",), 0: (),
              5: ("left", "middle", "right"), 6: ("left", "middle", "right", "below")}
    empty = {4: (), 3: ("middle",), 2: ("middle", "right"), 1: ("left", "middle"), 0: ("left", "middle"), 5: ("below",), 6: ("across",)}
    names = {0: "m", 1: "e", 2: "s", 3: "c", 4: "f", 5: "e", 6: "f"}
    for i, (cell, state, heat) in enumerate(zip(cells, states, heats)):
        host = state & 15
        cold, hot = palette[f"cold-{names[host]}"], palette[f"hot-{names[host]}"]
        for place in filled[host]:
            share = share_between(cell[place], cold, hot)
            check(share is not None, f"cell {i} in state {host}: {place} is {cell[place]}, not between {cold} and {hot}")
            check(abs(share - heat / 255) < 0.12, f"cell {i} in state {host}: heat {heat / 255:.2f}, shown {share:.2f}")
        for place in empty[host]:
            equal(tuple(cell[place]), palette["cell"], f"cell {i} in state {host}: {place}")
        equal(tuple(cell["gap"]), palette["map"], f"gap behind cell {i}")
        if "device" in snapshot["tiers"]:
            frame = {0: (0, 0, 0), 1: (1, 1, 1), 2: (1, 0, 1), 3: (1, 1, 0), 4: (1, 1, 0)}[state >> 4]
            for place, there in zip(("corner", "top", "side"), frame):
                equal(tuple(cell[place]) == palette["frame"], bool(there), f"frame of cell {i} in device state {state >> 4}, {place}")
    return len(cells)


def compare_map(context, page, theme="light"):
    """The map and the snapshot, once nothing flashes."""
    end = time.monotonic() + 8
    while True:
        page.wait_for_timeout(450)
        try:
            return check_cells(page, context.api("v1/experts"), theme)
        except AssertionError:
            if time.monotonic() > end:
                raise


@test
def the_map_equals_the_snapshot(context):
    page = context.page("experts", color_scheme="light")
    page.wait_for_selector("#map[data-pitch]")
    before = context.api("v1/experts")
    compare_map(context, page)
    page.click(".tabs a[data-view=chat]")
    ask(page, "table")
    page.click(".tabs a[data-view=experts]")
    compare_map(context, page)
    after = context.api("v1/experts")
    check(after["sequence"] > before["sequence"] and after["heat"] != before["heat"], "the run used no expert")


@mock("--device", "--quiet")
def the_map_shows_the_device_in_the_dark(context):
    page = context.page("experts", color_scheme="dark")
    page.wait_for_selector("#map[data-pitch]")
    compare_map(context, page, "dark")
    check("frame: full on the device" in page.inner_text(".legend"), "legend")


@mock("--slices", "--quiet")
def the_map_shows_slices(context):
    page = context.page("experts", color_scheme="light")
    page.wait_for_selector("#map[data-pitch]")
    compare_map(context, page)
    check("msb+lsb" in page.inner_text("#layers thead"), "no column of slices")


@mock("--quiet", "--layers", "48", "--experts", "128")
def the_map_is_turned_on_narrow_screens(context):
    page = context.page("experts", viewport={"width": 360, "height": 740}, color_scheme="light")
    page.wait_for_selector("#map[data-transposed=true]")
    compare_map(context, page)
    page.focus("#map")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    check("Layer 2, expert 1" in page.inner_text("#expert"), page.inner_text("#expert"))


@mock("--quiet")
def deltas_after_a_gap(context):
    page = context.page("experts", color_scheme="light")
    page.wait_for_selector("#map[data-pitch]")
    asked = []
    page.on("request", lambda request: request.url.endswith("/v1/experts") and asked.append(request.url))
    context.api("mock/set", [[0, 4], [1, 0], [2, 2]])
    compare_map(context, page)
    equal(len(asked), 0, "snapshots without a gap")
    context.api("mock/gap", {})
    until(lambda: len(asked) >= 1, "the page fetches the snapshot after a gap", page=page)
    compare_map(context, page)
    page.wait_for_timeout(2000)  # the snapshot of a run that has come to rest
    before = len(asked)
    context.api("mock/hidden", [[3, 1], [4, 1]])
    context.api("mock/set", [[5, 3]])
    until(lambda: len(asked) > before, "the page fetches the snapshot after another gap", page=page)
    compare_map(context, page)
    check(len(asked) <= 4, f"{len(asked)} snapshots")


@mock("--quiet")
def the_table_has_the_numbers_of_the_snapshot(context):
    page = context.page("experts")
    page.wait_for_selector("#layers tbody td")
    page.click(".tabs a[data-view=chat]")
    ask(page, "table")
    page.click(".tabs a[data-view=experts]")
    page.wait_for_timeout(2600)
    snapshot = context.api("v1/experts")
    states = base64.b64decode(snapshot["state"])
    uses = struct.unpack(f"<{len(states)}I", base64.b64decode(snapshot["uses"]))
    heads = page.locator("#layers thead th").all_inner_texts()
    equal(heads, ["Layer", "F", "C", "S", "E", "M", "Uses", "Bytes"], "columns")
    rows = page.evaluate("[...document.querySelectorAll('#layers tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent))")
    equal(len(rows), snapshot["layers"], "rows")
    for layer, row in enumerate(rows):
        span = range(layer * snapshot["experts"], (layer + 1) * snapshot["experts"])
        counts = [sum(states[i] & 15 == state for i in span) for state in (4, 3, 2, 1, 0)]
        expected = [snapshot["layer_ids"][layer], *counts, sum(uses[i] for i in span)]
        equal([int(cell.replace(",", "")) for cell in row[:-1]], expected, f"row {layer}")
    i = 2 * snapshot["experts"] + 5
    box = page.locator("#map").bounding_box()
    size = box["width"] / snapshot["experts"]
    page.mouse.move(box["x"] + 5.5 * size, box["y"] + 2.5 * size)
    words = page.inner_text("#expert")
    check(words.startswith(f"Layer {snapshot['layer_ids'][2]}, expert 5 · {'MESCF'[states[i] & 15]},") and f"{uses[i]:,}\u00a0use" in words, words)
    page.mouse.move(0, 0)
    check("Point at a cell" in page.inner_text("#expert"), "the expert is still described")


@mock("--layers", "61", "--experts", "256", "--busy")
def the_map_is_cheap(context):
    page = context.page("experts", viewport={"width": 1440, "height": 900})
    page.wait_for_selector("#map[data-pitch]")
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.wait_for_timeout(1500)
    busy = lambda: {entry["name"]: entry["value"] for entry in session.send("Performance.getMetrics")["metrics"]}["TaskDuration"]
    from_, began = busy(), time.monotonic()
    page.wait_for_timeout(6000)
    share = (busy() - from_) / (time.monotonic() - began)
    print(f"      the page takes {100 * share:.1f} % of a core")
    check(share < 0.10, f"{100 * share:.1f} % of a core")


@mock("--quiet")
def nothing_moves_if_motion_is_unwanted(context):
    page = context.page("experts", reduced_motion="reduce", color_scheme="dark")
    page.wait_for_selector("#map[data-pitch]")
    context.api("mock/gap", {})
    for _ in range(6):
        page.wait_for_timeout(50)
        white = page.evaluate("""() => { const c = document.getElementById('map');
          return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter((v, i, a) => i % 4 === 0 && v + a[i + 1] + a[i + 2] === 765).length; }""")
        equal(white, 0, "pixels of a flash")
    page.click(".tabs a[data-view=chat]")
    ask(page, "slow", wait=False)
    page.wait_for_selector(".running")
    equal(page.evaluate("document.getAnimations().length"), 0, "animations")
    page.keyboard.press("Escape")


# Run

@test
def budget_bars_sum_to_what_is_used(context):
    page = context.page("run")
    page.wait_for_selector(".budget .part")
    found = page.evaluate("""() => [...document.querySelectorAll('.budget')].map((budget) => {
      const bar = budget.querySelector('.stack').getBoundingClientRect();
      const parts = [...budget.querySelectorAll('.stack .part:not([hidden])')];
      return {tier: budget.dataset.tier, bytes: parts.reduce((sum, part) => sum + Number(part.dataset.bytes), 0),
        share: parts.reduce((sum, part) => sum + part.getBoundingClientRect().width, 0) / bar.width, text: budget.textContent,
        names: parts.map((part) => part.dataset.name)};
    })""")
    memory = context.api("v1/plan")["memory"]
    equal([entry["tier"] for entry in found], list(memory), "tiers")
    for entry in found:
        tier = memory[entry["tier"]]
        equal(entry["bytes"], tier["used"], "bytes of the parts")
        equal(sum(account["now"] for account in tier["by_name"].values()), tier["used"], "bytes of the accounts")
        check(abs(entry["share"] - tier["used"] / tier["budget"]) < 0.01, f"the bar is filled to {entry['share']}, not {tier['used'] / tier['budget']}")
        for name in tier["by_name"]:
            check(name in entry["text"], f"account {name} is not named")


@mock("--device")
def the_run_is_shown(context):
    page = context.page("run", viewport={"width": 1440, "height": 1200})
    other = context.page(profile=page.context)
    ask(other, "slow", wait=False)
    page.wait_for_selector(".lanes [data-state=decode]", timeout=5000)
    wait_for(page, "Number(document.querySelector('.tile b').textContent) > 1")
    check(re.search(r"\d+ in.*\d+ out", page.inner_text(".lanes")), page.inner_text(".lanes"))
    texts = page.inner_text("#view-run")
    for words in ("disk wait", "attention", "Sharing", "Read ahead", "in vain", "of the measured 2.40", "control group ends at", "Memory of the device",
                  "Routing is exact", "8,192\u00a0tokens", "4\u00a0requests run side by side"):
        check(words in texts, f"{words!r} is not shown in {texts!r}")
    width = page.evaluate("""[...document.querySelectorAll('.halves .stack .part')].reduce((sum, part) => sum + part.getBoundingClientRect().width, 0)
        / document.querySelector('.halves .stack').getBoundingClientRect().width""")
    check(abs(width - 1) < 0.02, f"the parts of a step fill {width}")
    other.keyboard.press("Escape")
    page.wait_for_selector("text=No request at the moment")


@mock("--quiet")
def an_engine_at_rest_has_no_speed(context):
    page = context.page("run")
    page.wait_for_selector(".budget .part")
    context.api("mock/frozen", {})
    seen = set()

    def rests():
        seen.add(page.inner_text(".tile b"))
        return "7.5" in seen and page.inner_text(".tile b") == "0"

    until(rests, "the speed is 0 again", page=page)
    keys = page.inner_text(".keys")
    check("everything else" in keys and "attention" not in keys and "sampling" not in keys, keys)


# The server

@mock("--key", "right")
def the_key_is_asked_for(context):
    context.expected = re.compile("401|Failed to load")
    page = context.page(ready=False)
    page.wait_for_selector("dialog")
    equal(page.locator("dialog").count(), 1, "dialogs")
    page.fill("#key", "wrong")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog:has-text('not accepted')")
    page.fill("#key", "right")
    page.keyboard.press("Enter")
    page.wait_for_selector("#state[data-state=open]")
    ask(page, "table")
    equal(page.evaluate("sessionStorage.getItem('sluice.key')"), "right", "the key that is kept")
    check("right" not in page.evaluate("JSON.stringify(localStorage)"), "the key lies in localStorage")
    page.reload()
    page.wait_for_selector("#state[data-state=open]")
    other = context.page(ready=False)
    other.wait_for_selector("dialog")
    other.keyboard.press("Escape")
    other.wait_for_selector("#state[data-state=locked]")
    other.click("#key-button")
    other.fill("#key", "right")
    other.click("dialog button.primary")
    other.wait_for_selector("#state[data-state=open]")


@mock()
def the_server_goes_and_comes_back(context):
    context.expected = re.compile("ERR_|Failed to load")
    page = context.page("experts")
    page.wait_for_selector("#map[data-pitch]")
    context.mock.stop()
    page.wait_for_selector("#state[data-state=gone]", timeout=5000)
    page.click(".tabs a[data-view=chat]")
    ask(page, "are you there?")
    check("does not answer" in page.inner_text(".fault"), page.inner_text(".fault"))
    context.mock.start()
    page.wait_for_selector("#state[data-state=open]", timeout=8000)
    page.click("text=Regenerate")
    page.wait_for_selector(".statistics:not([hidden])")
    page.click(".tabs a[data-view=experts]")
    compare_map(context, page, "light")


@mock("--loading", "4")
def loading_is_shown(context):
    context.expected = re.compile("503|Failed to load")
    page = context.page(ready=False)
    page.wait_for_selector("#state[data-state=loading]")
    wait_for(page, "/Loading the model, \\d+.%/.test(document.querySelector('h1').textContent)")
    page.wait_for_selector("#question")
    ask(page, "table")


@mock()
def a_page_without_storage_works(context):
    profile = context.profile()
    profile.add_init_script("for (const name of ['localStorage', 'sessionStorage']) Object.defineProperty(window, name, {get() { throw new DOMException('no', 'SecurityError'); }});")
    page = context.page(profile=profile)
    page.fill("#question", "table")
    page.press("#question", "Enter")
    page.wait_for_selector(".statistics:not([hidden])")
    equal(page.locator(".conversations .open").count(), 1, "conversations")


@mock()
def a_hidden_page_asks_for_nothing(context):
    page = context.page("run")
    equal(context.api("mock/subscribers"), 1, "subscribers")
    hide = "(hidden) => { Object.defineProperty(document, 'hidden', {value: hidden, configurable: true}); document.dispatchEvent(new Event('visibilitychange')); }"
    page.evaluate(hide, True)
    until(lambda: context.api("mock/subscribers") == 0, "the page leaves /events", 4)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(2500)
    equal(asked, [], "requests of a hidden page")
    page.evaluate(hide, False)
    until(lambda: context.api("mock/subscribers") == 1, "the page comes back", 4)


# What people see and can use

VIEWS = ("chat", "experts", "run")

OVERFLOW = """() => {
  const wide = document.scrollingElement.scrollWidth > innerWidth ? ['the page'] : [];
  const scrolls = (node) => { for (let n = node.parentElement; n; n = n.parentElement) {
    if (/auto|scroll|hidden/.test(getComputedStyle(n).overflowX) && n.getBoundingClientRect().right <= innerWidth + 1) return true; } return false; };
  for (const node of document.querySelectorAll('body *')) {
    if (!node.checkVisibility({visibilityProperty: true}) || node.closest('.unseen, .skip, .side:not(.open)')) continue;
    const box = node.getBoundingClientRect();
    if (box.width > 0 && (box.right > innerWidth + 1 || box.left < -1) && !scrolls(node)) wide.push(`${node.tagName}.${node.className}`);
  }
  for (const node of document.querySelectorAll('.view:not([hidden]), .log, .side nav')) {
    if (node.scrollWidth > node.clientWidth + 1) wide.push(`scrolls sideways: ${node.className}`);
  }
  return wide;
}"""

CONTRAST = """() => {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 1;
  const context = canvas.getContext('2d', {willReadFrequently: true});
  const rgba = (colour) => { context.clearRect(0, 0, 1, 1); context.fillStyle = colour; context.fillRect(0, 0, 1, 1); return [...context.getImageData(0, 0, 1, 1).data]; };
  const over = (top, below) => top.slice(0, 3).map((v, i) => v * top[3] / 255 + below[i] * (1 - top[3] / 255));
  const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const ground = (node) => { const stack = []; for (let n = node; n; n = n.parentElement) stack.unshift(rgba(getComputedStyle(n).backgroundColor));
    return stack.reduce((below, top) => over(top, below), [255, 255, 255]); };
  const weak = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const node = text.parentElement;
    if (text.data.trim() === '' || !node.checkVisibility({visibilityProperty: true, opacityProperty: true}) || node.closest('.unseen, .skip, .mirror, :disabled, option')) continue;
    const style = getComputedStyle(node);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const back = ground(node);
    const found = ratio(over(rgba(style.color), back), back);
    if (found < (large ? 3 : 4.5)) weak.push(`${found.toFixed(2)} “${text.data.trim().slice(0, 30)}”`);
  }
  for (const node of document.querySelectorAll('input, textarea, select')) {
    if (!node.checkVisibility() || node.closest('.unseen')) continue;
    const style = getComputedStyle(node);
    const framed = parseFloat(style.borderTopWidth) > 0 ? node : node.closest('.box, .paper');
    const found = ratio(rgba(getComputedStyle(framed).borderTopColor).slice(0, 3), ground(framed.parentElement));
    if (found < 3) weak.push(`${found.toFixed(2)} border of ${node.id || node.className}`);
  }
  return weak;
}"""

NAMES = """() => {
  const faults = [];
  const ids = [...document.querySelectorAll('[id]')].map((node) => node.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) faults.push(`id ${id} twice`);
  const seen = (node) => node.checkVisibility({visibilityProperty: true}) && !node.closest('.side:not(.open)') || node.closest('dialog');
  for (const node of document.querySelectorAll('a, button, input, textarea, select, summary, [role=img], [role=region], [role=meter], [role=application], [tabindex="0"], section, dialog, nav, aside, canvas')) {
    if (!node.checkVisibility({visibilityProperty: true}) || node.getAttribute('aria-hidden') === 'true') continue;
    const by = (node.getAttribute('aria-labelledby') ?? '').split(' ').filter(Boolean);
    for (const id of by) if (!document.getElementById(id)) faults.push(`${node.tagName} is named by ${id}, which is not there`);
    const name = node.getAttribute('aria-label') || by.map((id) => document.getElementById(id)?.textContent).join(' ') ||
      (node.labels && node.labels[0]?.textContent) || (/^(A|BUTTON|SUMMARY)$/.test(node.tagName) ? node.textContent : '');
    if (!name?.trim()) faults.push(`${node.tagName}.${node.className} has no name`);
  }
  for (const node of document.querySelectorAll('[aria-describedby], [aria-controls]')) {
    for (const id of `${node.getAttribute('aria-describedby') ?? ''} ${node.getAttribute('aria-controls') ?? ''}`.split(' ').filter(Boolean)) {
      if (!document.getElementById(id)) faults.push(`${node.tagName} refers to ${id}, which is not there`);
    }
  }
  for (const node of document.querySelectorAll('a, button, input, select, textarea, summary')) {
    if (!node.checkVisibility({visibilityProperty: true}) || node.closest('.unseen, .skip, p, li, td')) continue;
    const box = node.getBoundingClientRect();
    if (box.width < 24 || box.height < 24) faults.push(`${node.tagName} “${(node.textContent || node.getAttribute('aria-label') || '').trim()}” is ${box.width.toFixed(0)} × ${box.height.toFixed(0)}`);
  }
  for (const image of document.querySelectorAll('img')) if (!image.hasAttribute('alt')) faults.push('an image without alt');
  if (document.documentElement.lang !== 'en') faults.push('no language');
  if (document.querySelectorAll('main').length !== 1) faults.push('not one main');
  if ([...document.querySelectorAll('h1')].filter((node) => node.checkVisibility()).length > 1) faults.push('two h1');
  for (const table of document.querySelectorAll('table')) if (table.checkVisibility() && !table.querySelector('th[scope]')) faults.push('a table without heads');
  return faults;
}"""


def fill_views(context, page):
    """A page as it looks in use."""
    ask(page, "How does a sluice work? Please think about it and make a table of the gates.")
    ask(page, "Thank you. What did the miller's daughter see?")


def each_look(context):
    for scheme in ("light", "dark"):
        for width, height in ((360, 740), (768, 1024), (1440, 900)):
            page = context.page(viewport={"width": width, "height": height}, color_scheme=scheme)
            fill_views(context, page)
            for view in VIEWS:
                page.click(f".tabs a[data-view={view}]")
                page.wait_for_selector(f"#view-{view}:not([hidden])")
                page.wait_for_timeout(900)
                yield page, f"{view}-{width}-{scheme}"
            page.close()


@mock("--device", "--busy", "--layers", "24", "--experts", "64")
def looks_without_overflow_and_with_contrast(context):
    faults = []
    for page, name in each_look(context):
        if context.flags.shots:
            page.screenshot(path=os.path.join(context.flags.shots, f"{name}.png"))
            if name.startswith("run"):
                page.evaluate("document.querySelector('#view-run').scrollTo(0, 100000)")
                page.screenshot(path=os.path.join(context.flags.shots, f"{name}-end.png"))
        for kind, script in (("overflow", OVERFLOW), ("contrast", CONTRAST), ("names", NAMES)):
            faults += [f"{name} {kind}: {fault}" for fault in page.evaluate(script)]
    check(not faults, f"{len(faults)} faults\n    " + "\n    ".join(faults[:20]))


@mock("--key", "right")
def dialogs_and_odd_states_have_names_and_contrast(context):
    context.expected = re.compile("401|Failed to load")
    for scheme in ("light", "dark"):
        for width in (360, 1280):
            page = context.page(viewport={"width": width, "height": 740}, color_scheme=scheme, ready=False)
            faults = []

            def look(name):
                if context.flags.shots:
                    page.wait_for_timeout(250)
                    page.screenshot(path=os.path.join(context.flags.shots, f"{name}-{width}-{scheme}.png"))
                for script in (OVERFLOW, CONTRAST, NAMES):
                    faults.extend(f"{name}-{width}-{scheme}: {fault}" for fault in page.evaluate(script))

            page.wait_for_selector("dialog")
            look("key")
            page.fill("#key", "right")
            page.keyboard.press("Enter")
            page.wait_for_selector("#question")
            look("welcome")
            page.click("button[aria-label=Settings]")
            page.click("dialog summary")
            look("settings")
            page.fill("#set-tools", '[{"type":"function","function":{"name":"get_weather"}}]')
            page.click("dialog button.primary")
            ask(page, "use the tool")
            look("tool")
            page.fill(".card textarea", "sunny")
            page.click(".card button")
            page.wait_for_selector(".body:has-text('sunny')")
            page.wait_for_selector(".act:not(.stop)")
            ask(page, "fail")
            look("failure")
            page.click(".message.user >> nth=0 >> button:has-text('Edit')")
            look("edit")
            page.keyboard.press("Escape")
            if width == 360:
                page.click(".side-toggle")
                page.wait_for_timeout(300)
                look("side")
            check(not faults, f"{len(faults)} faults\n    " + "\n    ".join(faults[:20]))


@mock("--base")
def the_completion_box_has_names_and_contrast(context):
    for width, scheme in ((360, "dark"), (1280, "light")):
        page = context.page(viewport={"width": width, "height": 740}, color_scheme=scheme)
        page.fill("#text", "Once upon a time")
        page.keyboard.press("Control+Enter")
        page.wait_for_selector(".statistics:not([hidden])")
        if context.flags.shots:
            page.screenshot(path=os.path.join(context.flags.shots, f"text-{width}-{scheme}.png"))
        faults = [fault for script in (OVERFLOW, CONTRAST, NAMES) for fault in page.evaluate(script)]
        check(not faults, faults)


@mock("--device")
def zoom_of_200_percent(context):
    page = context.page(viewport={"width": 640, "height": 360}, device_scale_factor=2, color_scheme="light")
    fill_views(context, page)
    for view in VIEWS:
        page.click(f".tabs a[data-view={view}]")
        page.wait_for_timeout(600)
        if context.flags.shots:
            page.screenshot(path=os.path.join(context.flags.shots, f"{view}-zoomed.png"))
        equal(page.evaluate(OVERFLOW), [], f"overflow of {view}")
    page.click(".tabs a[data-view=experts]")
    compare_map(context, page)


@mock("--quiet")
def tab_order(context):
    page = context.page()
    ask(page, "table")
    page.evaluate("document.activeElement.blur()")
    for view, must in (("chat", ["skip", "brand", "Chat", "Experts", "Run", "theme-button", "New conversation", "conversation", "Delete", "Export", "Import", "log",
                                 "Copy the question", "Edit", "table", "Copy the code", "code", "link", "Copy the answer", "Regenerate", "question", "Settings", "Send"]),
                       ("experts", ["skip", "brand", "Chat", "Experts", "Run", "theme-button", "map", "table"]),
                       ("run", ["skip", "brand", "Chat", "Experts", "Run", "theme-button", "table"])):
        page.goto(context.url + "#" + view)
        page.reload()
        page.wait_for_selector("#state[data-state=open]")
        page.wait_for_timeout(600)
        found, invisible = [], []
        for _ in range(40):
            page.keyboard.press("Tab")
            entry = page.evaluate("""() => {
              const node = document.activeElement;
              if (node === document.body) return null;
              const style = getComputedStyle(node);
              const shown = parseFloat(style.outlineWidth) > 0 && style.outlineStyle !== 'none' || node.closest('.box, .paper') && parseFloat(getComputedStyle(node.closest('.box, .paper')).outlineWidth) > 0;
              const box = node.getBoundingClientRect();
              const inside = box.bottom > 0 && box.top < innerHeight && box.width > 0 && getComputedStyle(node).opacity === '1';
              const name = node.matches('.skip') ? 'skip' : node.matches('.brand') ? 'brand' : node.matches('.log') ? 'log' : node.matches('.table') ? 'table'
                : node.matches('.code pre') ? 'code' : node.matches('.body a') ? 'link' : node.matches('.conversations .open') ? 'conversation' : node.id
                || (node.getAttribute('aria-label') ?? node.textContent).trim();
              return [name, Boolean(shown), inside];
            }""")
            if entry is None:
                break
            found.append("Delete" if entry[0].startswith("Delete") else entry[0])
            if not (entry[1] and entry[2]):
                invisible.append(entry)
        equal(found, must, f"order of {view}")
        check(not invisible, f"focus is not seen: {invisible}")


@mock()
def the_theme_is_kept(context):
    page = context.page(color_scheme="light")
    ground = lambda: page.evaluate("getComputedStyle(document.body).backgroundColor")
    light = ground()
    page.click("#theme-button")
    equal(page.get_attribute("#theme-button", "aria-label"), "Theme: light", "theme")
    page.click("#theme-button")
    dark = ground()
    check(dark != light, "dark is light")
    page.reload()
    equal(ground(), dark, "ground after reload")
    page.click("#theme-button")
    equal(ground(), light, "ground as the system has it")


@mock()
def memory_is_steady_over_500_answers(context):
    page = context.page()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def held():
        for _ in range(3):
            session.send("HeapProfiler.collectGarbage")
        metrics = {entry["name"]: entry["value"] for entry in session.send("Performance.getMetrics")["metrics"]}
        return metrics["JSHeapUsedSize"], metrics["Nodes"], metrics["JSEventListeners"]

    marks = []
    for conversation in range(50):
        page.click("text=New conversation")
        for question in range(10):
            page.evaluate("""(n) => new Promise((done) => {
              const area = document.querySelector('#question');
              area.value = `flood ${n}`;
              const act = document.querySelector('.act');
              new MutationObserver((_, observer) => {
                if (act.getAttribute('aria-label') !== 'Send') return;
                observer.disconnect();
                done();
              }).observe(act, {attributes: true});
              act.click();
            })""", question)
        page.hover(".conversations li.current")
        page.click(".conversations li.current button[aria-label^=Delete]")
        if conversation in (9, 49):
            page.click("text=New conversation")
            page.wait_for_timeout(5200)  # a remark with its undo goes
            marks.append(held())
    early, late = marks
    print(f"      after 100 and 500 answers: {early[0] / 1e6:.2f} and {late[0] / 1e6:.2f} MB, {early[1]:.0f} and {late[1]:.0f} nodes, "
          f"{early[2]:.0f} and {late[2]:.0f} listeners")
    equal(len(stored(page)), 0, "conversations that are left")
    check(late[0] < early[0] + 1e6, "the heap grows")
    check(late[1] < early[1] * 1.2 + 200, "the nodes grow")
    check(late[2] < early[2] * 1.2 + 50, "the listeners grow")


def take_picture(flags, browser):
    """The picture of the documentation: the map and the table of a model in use."""
    server = Mock("--busy", "--device", "--layers", "24", "--experts", "64", "--pace", "0.02")
    try:
        page = browser.new_page(viewport={"width": 1400, "height": 760}, color_scheme="dark")
        page.goto(server.url)
        page.wait_for_selector("#question")
        ask(page, "slow", wait=False)
        page.click(".tabs a[data-view=experts]")
        page.wait_for_timeout(4000)
        page.screenshot(path=flags.picture)
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", help="a server that runs, instead of one of invented answers")
    parser.add_argument("--key", help="its key")
    parser.add_argument("--shots", help="a folder for screenshots")
    parser.add_argument("--only", default="", help="tests whose name contains this")
    parser.add_argument("--picture", help="makes the picture of the documentation, and nothing else")
    parser.add_argument("--browser", default="/usr/bin/chromium")
    flags = parser.parse_args()
    if flags.url and not flags.url.endswith("/"):
        flags.url += "/"
    if flags.shots:
        os.makedirs(flags.shots, exist_ok=True)
    failed, left_out, passed = [], [], 0
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=flags.browser, args=["--no-sandbox", "--disable-gpu"])
        if flags.picture:
            take_picture(flags, browser)
            return 0
        for function in TESTS:
            name = function.__name__
            if flags.only not in name:
                continue
            if flags.url and function.needs:
                left_out.append(name)
                continue
            server = None if flags.url else Mock(*(function.needs or ("--pace", "0.004", "--quiet")))
            context = Context(flags, browser, flags.url or server.url)
            context.mock = server
            began = time.monotonic()
            try:
                try:
                    function(context)
                finally:
                    context.finish()
                passed += 1
                print(f"ok    {name} ({time.monotonic() - began:.1f} s)", flush=True)
            except Exception as error:  # noqa: BLE001 (a test may fail in any way)
                failed.append(name)
                words = str(error) if isinstance(error, AssertionError) else "".join(traceback.format_exception_only(error)).strip()
                if error.__context__ is not None and isinstance(error.__context__, AssertionError):
                    words += f"\n    before that: {error.__context__}"
                print(f"FAIL  {name} ({time.monotonic() - began:.1f} s): {words}", flush=True)
            finally:
                if server is not None:
                    server.stop()
        browser.close()
    print(f"{passed} passed, {len(failed)} failed" + (f", {len(left_out)} left out without invented answers: {', '.join(left_out)}" if left_out else ""))
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
