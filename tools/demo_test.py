#!/usr/bin/env python3
"""Tests of tools/demo.sh with a program that only pretends to run: what the script itself says fits the terminal."""
import fcntl
import os
import pty
import shutil
import struct
import subprocess
import tempfile
import termios
import unittest

TOOLS = os.path.dirname(os.path.abspath(__file__))
WORDS = "The old king looked at his daughter and said, “Come and tell me, and tell me what the truth I do.” " * 3
PROGRAM = """#!/bin/sh
case $1 in
  pack) mkdir -p "$4" && touch "$4/manifest.json" ;;
  run) case "$*" in
    *--quiet*) echo "$QUIET" ;;
    *) echo text ;;
  esac ;;
esac
"""


def shown_by(descriptor):
    shown = b""
    while True:
        try:
            some = os.read(descriptor, 4096)
        except OSError:  # how a terminal says that nobody writes to it any more
            return shown.decode()
        if not some:
            return shown.decode()
        shown += some


class Demo(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.TemporaryDirectory()
        self.addCleanup(self.root.cleanup)
        for folder in ("tools", "build", "models/fable-moe-18m"):
            os.makedirs(os.path.join(self.root.name, folder))
        self.script = shutil.copy(os.path.join(TOOLS, "demo.sh"), os.path.join(self.root.name, "tools"))
        program = os.path.join(self.root.name, "build/sluice")
        with open(program, "w", encoding="utf-8") as file:
            file.write(PROGRAM.replace("$QUIET", WORDS.strip()))
        os.chmod(program, 0o755)
        with open(os.path.join(self.root.name, "models/fable-moe-18m/model.safetensors"), "wb") as file:
            file.truncate(34 << 20)

    def on_terminal(self, columns):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        with subprocess.Popen([self.script], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
                              env={**os.environ, "NO_COLOR": "1", "TERM": "dumb"}) as demo:
            os.close(theirs)
            shown = shown_by(ours)
        os.close(ours)
        self.assertEqual(demo.returncode, 0, shown)
        return shown.replace("\r\n", "\n")

    def test_its_lines_fit_the_terminal(self):
        whole = subprocess.run([self.script], capture_output=True, text=True, check=True).stdout
        shutil.rmtree(os.path.join(self.root.name, "build/demo"))
        for columns in (50, 80):
            shown = self.on_terminal(columns)
            self.assertEqual([line for line in shown.split("\n") if len(line) > columns], [], columns)
            self.assertIn("no bit of the answer.", " ".join(shown.split()))
            if columns == 50:  # the first of them packs, as the run without a terminal did
                self.assertEqual(shown.split(), whole.split())

    def test_elsewhere_its_sentences_are_whole(self):
        whole = subprocess.run([self.script], capture_output=True, text=True, check=True).stdout
        self.assertIn("\nThey are equal: the budget changed how much memory was used, and no bit of the answer.\n", whole)


if __name__ == "__main__":
    unittest.main()
