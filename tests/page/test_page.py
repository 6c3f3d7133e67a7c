#!/usr/bin/env python3
"""Tests of the page in a browser (docs/page.md, "Tests").

    python3 -m venv VENV && VENV/bin/pip install playwright
    VENV/bin/python tests/page/test_page.py [--url URL [--key KEY]] [--shots FOLDER] [--only WORD] [--picture FILE]

Drives Debian's chromium. Without --url, servers of invented answers are started (mock_server.py); with it, the tests that need such a
server are left out, and named. A test fails as well if the page writes an error to the console, breaks its security policy, or asks
another host for anything. Prints a line for each test, and fails if one of them failed.
"""
import argparse
import os
import sys
import time
import traceback

from playwright.sync_api import sync_playwright

import chat_tests  # noqa: F401 (each of these adds its tests)
import markdown_tests  # noqa: F401
import expert_tests  # noqa: F401
import run_tests  # noqa: F401
import server_tests  # noqa: F401
import look_tests  # noqa: F401
from harness import Context, Mock, TESTS, ask


def take_picture(flags, browser):
    """The picture of the documentation: the map and the table of a model in use, of the server of --url."""
    page = browser.new_page(viewport={"width": 1400, "height": 760}, color_scheme="dark")
    page.goto(flags.url)
    page.wait_for_selector("#question")
    ask(page, "Tell me of the fox who lived near the sea.", wait=False)
    page.click(".tabs a[data-view=experts]")
    page.wait_for_timeout(3000)
    page.screenshot(path=flags.picture)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", help="a server that runs, instead of one of invented answers")
    parser.add_argument("--key", help="its key")
    parser.add_argument("--shots", help="a folder for screenshots")
    parser.add_argument("--only", default="", help="tests whose name contains this")
    parser.add_argument("--picture", help="makes the picture of the documentation from --url, and nothing else")
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
