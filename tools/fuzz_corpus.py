#!/usr/bin/env python3
"""Inputs of fuzz targets as lines of text: tests/fuzz/corpus/TARGET.txt has one a line, its name, a space and its bytes. Bytes that
are no printable UTF-8 stand as \\xHH, a line's end as \\n, a backslash as \\\\. tests/fuzz/replay.cc reads the same.
  tools/fuzz_corpus.py add TARGET FILE NAME       the file's bytes become the input NAME of the target
  tools/fuzz_corpus.py unpack TARGET DIRECTORY    writes the target's inputs to files named after them"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CORPUS = os.path.join(ROOT, "tests/fuzz/corpus")
UNESCAPED = {b"\\\\": b"\\", b"\\n": b"\n"}


def escape(data):
    """The bytes as text of one line, from which unescape makes them again."""
    text = data.decode("utf-8", "surrogateescape")
    out = []
    for at, char in enumerate(text):
        if char == "\\":
            out.append("\\\\")
        elif char == "\n":
            out.append("\\n")
        elif char.isprintable() and not (char == " " and at == len(text) - 1):  # editors cut a space at a line's end
            out.append(char)
        else:
            out.append("".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape")))
    return "".join(out)


def unescape(text):
    def byte(match):
        if match[0] in UNESCAPED:
            return UNESCAPED[match[0]]
        if not match[1]:
            raise ValueError(f"{match[0]!r} is no escape; expected \\\\, \\n or \\xHH")
        return bytes([int(match[1], 16)])
    return re.sub(rb"\\(?:x([0-9a-f]{2})|.|$)", byte, text.encode("utf-8"))


def read(target, corpus=CORPUS):
    """The inputs by name."""
    path = os.path.join(corpus, target + ".txt")
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8", newline="\n") as file:
        lines = file.read().split("\n")
    if lines.pop() != "":
        raise ValueError(f"{path}: the last line does not end")
    inputs = {}
    for number, line in enumerate(lines, 1):
        name, space, text = line.partition(" ")
        if not space or not re.fullmatch(r"[\w.+-]+", name) or name in inputs:
            raise ValueError(f"{path}:{number}: expected a name that no other line has, a space and the input")
        inputs[name] = unescape(text)
    return inputs


def write(target, inputs, corpus=CORPUS):
    with open(os.path.join(corpus, target + ".txt"), "w", encoding="utf-8", newline="\n") as file:
        for name in sorted(inputs):
            file.write(f"{name} {escape(inputs[name])}\n")


def main(arguments):
    if len(arguments) == 4 and arguments[0] == "add":
        _, target, path, name = arguments
        with open(path, "rb") as file:
            write(target, {**read(target), name: file.read()})
    elif len(arguments) == 3 and arguments[0] == "unpack":
        _, target, directory = arguments
        os.makedirs(directory, exist_ok=True)
        for name, data in read(target).items():
            with open(os.path.join(directory, name), "wb") as file:
                file.write(data)
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
