"""Servers of invented answers, pages in fresh profiles, and checks: what the tests of the page stand on."""
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

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
