#!/usr/bin/env python3
"""Tests of tools/fuzz_corpus.py, and of the form of the inputs that are committed."""
import os
import tempfile
import unittest

import fuzz_corpus


class Lines(unittest.TestCase):
    def test_all_bytes_and_all_pairs_of_them_come_back(self):
        for first in range(256):
            data = b"".join(bytes([first, second]) for second in range(256))
            self.assertEqual(fuzz_corpus.unescape(fuzz_corpus.escape(data)), data)

    def test_what_replay_takes_for_granted(self):  # tests/fuzz/replay.cc: understands_escapes
        self.assertEqual(fuzz_corpus.unescape("a\\\\n\\n\\x00\\xff\\x7fä "), b"a\\n\n\0\xff\x7f\xc3\xa4 ")

    def test_an_input_is_one_line_that_no_editor_changes(self):
        text = fuzz_corpus.escape(b"one\ntwo\r\n\x0b\x0c\x1c\xe2\x80\xa8\xc2\x85 ")
        self.assertEqual(text.splitlines(), [text])
        self.assertEqual(text, text.strip())

    def test_other_escapes_are_refused(self):
        for text in ("\\", "\\t", "\\x", "\\x1", "\\xAG", "a\\q"):
            with self.assertRaises(ValueError, msg=text):
                fuzz_corpus.unescape(text)

    def test_inputs_are_written_and_read(self):
        with tempfile.TemporaryDirectory() as corpus:
            inputs = {"b": b"\0\n", "a": b"", "c.json": b"{ }"}
            fuzz_corpus.write("x", inputs, corpus)
            self.assertEqual(fuzz_corpus.read("x", corpus), inputs)
            self.assertEqual(fuzz_corpus.read("none", corpus), {})

    def test_two_inputs_of_one_name_are_refused(self):
        with tempfile.TemporaryDirectory() as corpus:
            with open(os.path.join(corpus, "x.txt"), "w", encoding="utf-8") as file:
                file.write("a 1\na 2\n")
            with self.assertRaises(ValueError):
                fuzz_corpus.read("x", corpus)


class Committed(unittest.TestCase):
    def test_lines_are_as_the_script_writes_them(self):
        targets = [name[:-4] for name in os.listdir(fuzz_corpus.CORPUS) if name.endswith(".txt")]
        self.assertGreater(len(targets), 10)
        for target in targets:
            with self.subTest(target), tempfile.TemporaryDirectory() as corpus:
                fuzz_corpus.write(target, fuzz_corpus.read(target), corpus)
                with open(os.path.join(corpus, target + ".txt"), "rb") as again, \
                        open(os.path.join(fuzz_corpus.CORPUS, target + ".txt"), "rb") as file:
                    self.assertEqual(again.read(), file.read())


if __name__ == "__main__":
    unittest.main()
