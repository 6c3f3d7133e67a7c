#!/usr/bin/env python3
"""Tests of tools/check_docs.py on small trees, and the check of this repository itself."""
import os
import tempfile
import unittest

import check_docs

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Check(unittest.TestCase):
    def faults(self, **files):
        """The faults of a tree with one page, docs/page.md, and these files; `_` in a name is a `/`."""
        with tempfile.TemporaryDirectory() as root:
            files = {"docs_page.md": "# Page\n\n## Errors\n\n## 4.1 Codes of `int8`\n", **files}
            for name, text in files.items():
                path = os.path.join(root, name.replace("_", "/"))
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            return list(check_docs.faults(root))

    def test_links_and_citations_that_hold_are_no_faults(self):
        self.assertEqual(self.faults(**{
            "README.md": "[a](docs/page.md) [b](docs/page.md#errors) [c](docs/page.md#41-codes-of-int8) [d](https://example.org/x.md)\n",
            "src_a.h": '// See docs/page.md, "Errors"; docs/page.md,\n// section 4.1.\n',
            "docs_other.md": 'page.md, "Errors", and [page](page.md), "Codes"\n'.replace(', "Codes"', ', "Errors"')}), [])

    def test_a_link_to_a_missing_file_is_named_with_its_line(self):
        self.assertEqual(self.faults(**{"README.md": "\n[a](docs/gone.md)\n"}),
                         ["README.md:2: links to docs/gone.md, which is not there", "README.md:2: cites docs/gone.md, which is not there"])

    def test_a_link_to_a_missing_section_is_named(self):
        self.assertEqual(self.faults(**{"README.md": "[a](docs/page.md#threads)\n"}),
                         ["README.md:1: links to docs/page.md#threads, and docs/page.md has no such section"])

    def test_a_page_that_a_comment_cites_must_be_there(self):
        self.assertEqual(self.faults(**{"src_a.cc": "int x;\n// docs/gone.md says why.\n"}),
                         ["src/a.cc:2: cites docs/gone.md, which is not there"])

    def test_a_section_that_a_comment_cites_must_be_there_even_over_two_lines(self):
        self.assertEqual(self.faults(**{"src_a.cc": '// Why (docs/page.md,\n// "Threads").\n'}),
                         ['src/a.cc: cites docs/page.md, "Threads", and there is no such section'])
        self.assertEqual(self.faults(**{"src_a.cc": "// docs/page.md, sections 4.1 and 4.2\n"}),
                         ["src/a.cc: cites docs/page.md, section 4.2, and there is no such section"])
        self.assertEqual(self.faults(**{"docs_other.md": '(page.md, "Threads")\n'}),
                         ['docs/other.md: cites docs/page.md, "Threads", and there is no such section'])

    def test_sections_of_the_specification_must_be_there(self):
        spec = {"docs_SPEC.md": "## 1. One\n### 1.7 Pools\n"}
        self.assertEqual(self.faults(**spec, **{"src_a.cc": "// SPEC §1.7, SPEC §1\n"}), [])
        self.assertEqual(self.faults(**spec, **{"src_a.cc": "// SPEC\n// §1.8\n"}), ["src/a.cc: cites SPEC §1.8, and there is no such section"])

    def test_examples_in_code_blocks_are_no_links(self):
        self.assertEqual(self.faults(**{"README.md": "    [a](gone.md)\n\n```\n[b](gone.md)\n```\n"}), [])

    def test_a_sentence_that_begins_with_of_is_named(self):
        for text in ("Of two, one.", "One. Of two, one.", "- Of two", "**Of two** one", "| one. Of two |", "(Of two)", "# Of two", "Why: Of two", "> Of two"):
            self.assertEqual(self.faults(**{"README.md": f"\n{text}\n"}), ['README.md:2: a sentence begins with "Of": name its subject first'], text)
        for text in ('No sentence begins with "Of".', "One of two.", "Often. Offsets.", "`x`\n\n    Of code\n\n```\nOf code\n```"):
            self.assertEqual(self.faults(**{"README.md": text + "\n"}), [], text)
        self.assertEqual(self.faults(**{"src_a.cc": "// Of comments another test knows.\n"}), [])

    def test_a_long_line_is_named_unless_it_is_of_a_table_or_an_example(self):
        just = "é" * 200
        self.assertEqual(self.faults(**{"README.md": f"{just}\n\n{just}x\n"}), ["README.md:3: has 201 columns: break it behind at most 200"])
        self.assertEqual(self.faults(**{"docs_other.md": f"- {just}\n"}), ["docs/other.md:1: has 202 columns: break it behind at most 200"])
        for kept in (f"| {just} |", f"  | {just} |", f"    {just}", f"```\n{just}x\n```"):
            self.assertEqual(self.faults(**{"README.md": kept + "\n"}), [], kept[:9])

    def test_the_tour_stays_short(self):
        lines = "a\n" * 150
        self.assertEqual(self.faults(**{"docs_architecture.md": lines, "docs_other.md": lines + "b\n"}), [])
        self.assertEqual(self.faults(**{"docs_architecture.md": lines + "b\n"}),
                         ["docs/architecture.md: has 151 lines: move detail to the page of its subject until it has at most 150"])

    def test_every_page_and_section_that_this_repository_cites_is_there(self):
        self.assertEqual(list(check_docs.faults(ROOT)), [])


if __name__ == "__main__":
    unittest.main()
