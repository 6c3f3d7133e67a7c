#!/usr/bin/env python3
"""Finds what pages and comments cite and the repository does not have, and prose of pages that is hard to read.

    tools/check_docs.py [ROOT]

Checked are relative links of Markdown files with their #sections; `docs/X.md` anywhere in sources, tools and pages; sections that are
cited with a page, as in `docs/X.md, "Errors"` or `docs/X.md, section 4.1`; and sections of the specification (`SPEC §1.7`). In Markdown
files no sentence begins with "Of" (CONTRIBUTING.md), and no line has more than 200 columns, except in tables and examples. The tour,
docs/architecture.md, has at most 150 lines. Prints one line for each fault and fails if there is one.
"""
import os
import re
import subprocess
import sys

ENDINGS = (".md", ".h", ".cc", ".cu", ".py", ".sh", ".cmake", ".txt", "Makefile")
SELF = ("tools/check_docs.py", "tools/check_docs_test.py")  # their examples are no citations
LINK = re.compile(r"(?<!!)!?\[[^\]\n]*\]\(([^)\s]+)\)")
PAGE = re.compile(r"(?<![\w/.-])docs/[\w./-]+?\.(?:md|svg|png)\b")
# A page by its path or, in docs/, by its name alone; behind it, maybe through the bracket of a link, one section or two.
SECTION = re.compile(r"(?<![\w/-])((?:docs/)?[\w-]+\.md)`?\)?,? (?:\"([^\"\n]{3,80})\"|sections? (\d+(?:\.\d+)?)(?: and (\d+(?:\.\d+)?))?)")
MOST_COLUMNS = 200
MOST_LINES = {"docs/architecture.md": 150}  # a tour; what is longer has a page of its own
OF = re.compile(r"(?<!\")\bOf\b(?!\")")  # a capital stands nowhere else than where a sentence begins
SPEC = re.compile(r"\bSPEC(?:\.md)?(?:\]\(SPEC\.md\))? ?§ ?(\d+(?:\.\d+)?)")


def files_of(root):
    """What git would commit: tracked files, and new ones that it does not ignore."""
    done = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        names = done.stdout.splitlines()
    else:  # a copy without its repository
        names = [os.path.relpath(os.path.join(folder, name), root) for folder, _, names in os.walk(root) for name in names]
        names = [name for name in names if not name.startswith(("build", ".git"))]
    return sorted(name for name in set(names) if name.endswith(ENDINGS) and os.path.isfile(os.path.join(root, name)))


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def without_code(markdown):
    """The text without indented and fenced examples, line by line."""
    kept, fenced = [], False
    for line in markdown.split("\n"):
        if line.startswith("```"):
            fenced = not fenced
        kept.append("" if fenced or line.startswith(("    ", "```")) else line)
    return "\n".join(kept)


def headings(markdown):
    return [line.lstrip("#").strip() for line in without_code(markdown).split("\n") if re.match(r"#{1,6} ", line)]


def anchor(heading):
    """The #name that GitHub gives a heading."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


class Pages:
    def __init__(self, root):
        self.root, self.known = root, {}

    def headings(self, path):
        """None if there is no such page."""
        if path not in self.known:
            full = os.path.join(self.root, path)
            self.known[path] = headings(read(full)) if os.path.isfile(full) else None
        return self.known[path]


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def link_faults(name, text, pages):
    for match in LINK.finditer(without_code(text)):
        target = match[1]
        if re.match(r"[a-z]+:", target):
            continue
        path, _, section = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
        at = f"{name}:{line_of(text, match.start())}"
        if not os.path.exists(os.path.join(pages.root, path)):
            yield f"{at}: links to {target}, which is not there"
        elif section and section not in map(anchor, pages.headings(path)):
            yield f"{at}: links to {target}, and {path} has no such section"


def prose_faults(name, text):
    for number, line in enumerate(without_code(text).split("\n"), 1):
        if OF.search(line):
            yield f'{name}:{number}: a sentence begins with "Of": name its subject first'
        if len(line) > MOST_COLUMNS and not line.lstrip().startswith("|"):
            yield f"{name}:{number}: has {len(line)} columns: break it behind at most {MOST_COLUMNS}"
    lines = text.count("\n")
    if lines > MOST_LINES.get(name, lines):
        yield f"{name}: has {lines} lines: move detail to the page of its subject until it has at most {MOST_LINES[name]}"


def cited_faults(name, text, pages):
    # A comment that goes on in the next line is one text; as many characters are left, so that positions stay.
    joined = re.sub(r"\n[ \t]*(?://+|#)?[ \t]?", lambda m: " " + "\0" * (len(m[0]) - 1), text).replace("\0", "")
    for match in PAGE.finditer(text):
        if not os.path.exists(os.path.join(pages.root, match[0])):
            yield f"{name}:{line_of(text, match.start())}: cites {match[0]}, which is not there"
    for match in SECTION.finditer(joined):
        page, title, *numbers = match.groups()
        if not page.startswith("docs/"):
            if not name.startswith("docs/"):
                continue
            page = f"docs/{page}"
        known = pages.headings(page)
        if known is None:
            continue  # reported above, or no page of docs/
        if title and not any(heading.replace("`", "").startswith(title.rstrip(".,").replace("`", "")) for heading in known):
            yield f'{name}: cites {page}, "{title}", and there is no such section'
        for number in filter(None, numbers):
            if not any(re.match(rf"{re.escape(number)}[. ]", heading) for heading in known):
                yield f"{name}: cites {page}, section {number}, and there is no such section"
    spec = pages.headings("docs/SPEC.md")
    for match in SPEC.finditer(joined):
        if spec is not None and not any(re.match(rf"{re.escape(match[1])}[. ]", heading) for heading in spec):
            yield f"{name}: cites SPEC §{match[1]}, and there is no such section"


def faults(root):
    pages = Pages(root)
    for name in files_of(root):
        if name in SELF:
            continue
        text = read(os.path.join(root, name))
        if name.endswith(".md"):
            yield from link_faults(name, text, pages)
            yield from prose_faults(name, text)
        yield from cited_faults(name, text, pages)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found = list(faults(root))
    print("\n".join(found) if found else "every page and section that is cited is there, and pages read well")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
