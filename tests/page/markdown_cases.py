"""Markdown and what the page makes of it: pairs of text and of nodes, written as tags without attributes but those of the second list."""

LINK = '<a href="{0}" rel="noopener noreferrer" target="_blank">'


def link(address, text):
    return LINK.format(address) + text + "</a>"


def code(text, language="text"):
    return f'<pre lang="{language}">{text}</pre>'


CASES = [
    # Paragraphs and breaks
    ("one", "<p>one</p>"),
    ("one\ntwo", "<p>one\ntwo</p>"),
    ("one\n\ntwo", "<p>one</p><p>two</p>"),
    ("one  \ntwo", "<p>one<br>two</p>"),
    ("one\\\ntwo", "<p>one<br>two</p>"),
    ("\n\n  one\n", "<p>one</p>"),
    ("one\r\ntwo\r\n\r\nthree", "<p>one\ntwo</p><p>three</p>"),
    # Headings
    ("# one", "<h1>one</h1>"),
    ("### one ###", "<h3>one</h3>"),
    ("#one", "<p>#one</p>"),
    ("####### one", "<p>####### one</p>"),
    ("one\n===\ntwo\n---", "<h1>one</h1><h2>two</h2>"),
    ("## *one* `two`", "<h2><em>one</em> <code>two</code></h2>"),
    # Emphasis
    ("*one* _two_ **three** __four__", "<p><em>one</em> <em>two</em> <strong>three</strong> <strong>four</strong></p>"),
    ("***one***", "<p><em><strong>one</strong></em></p>"),
    ("**one *two* three**", "<p><strong>one <em>two</em> three</strong></p>"),
    ("snake_case_name and 2 * 3 * 4", "<p>snake_case_name and 2 * 3 * 4</p>"),
    ("**open and *open", "<p>**open and *open</p>"),
    ("~~gone~~ and ~kept~", "<p><del>gone</del> and ~kept~</p>"),
    ("\\*no\\* \\_no\\_", "<p>*no* _no_</p>"),
    ("*a **b* c**", "<p><em>a <em><em>b</em> c</em></em></p>"),
    ("a**\"b\"**c", "<p>a**\"b\"**c</p>"),
    # Code
    ("`one`", "<p><code>one</code></p>"),
    ("`` a`b ``", "<p><code>a`b</code></p>"),
    ("`open", "<p>`open</p>"),
    ("`*no*` *yes*", "<p><code>*no*</code> <em>yes</em></p>"),
    ("```py\na = 1\n\nb = 2\n```", code("a = 1\n\nb = 2", "py")),
    ("```\nunclosed\n*text*", code("unclosed\n*text*")),
    ("~~~\n```\n~~~", code("```")),
    ("````\n```\n````\nafter", code("```") + "<p>after</p>"),
    ("    four\n    columns", code("four\ncolumns")),
    ("```html\n<script>alert(1)</script>\n```", code("&lt;script>alert(1)&lt;/script>", "html")),
    # Lists
    ("- one\n- two", "<ul><li>one</li><li>two</li></ul>"),
    ("* one\n+ two", "<ul><li>one</li></ul><ul><li>two</li></ul>"),
    ("1. one\n2. two", "<ol><li>one</li><li>two</li></ol>"),
    ("3) three\n4) four", '<ol start="3"><li>three</li><li>four</li></ol>'),
    ("- one\n  - two\n    - three", "<ul><li>one<ul><li>two<ul><li>three</li></ul></li></ul></li></ul>"),
    ("1. one\n  - two\n2. three", "<ol><li>one<ul><li>two</li></ul></li><li>three</li></ol>"),
    ("- one\n\n- two", "<ul><li><p>one</p></li><li><p>two</p></li></ul>"),
    ("- one\n\n  more\n- two", "<ul><li><p>one</p><p>more</p></li><li><p>two</p></li></ul>"),
    ("- one\n  ```\n  code\n  ```", "<ul><li>one" + code("code") + "</li></ul>"),
    ("text\n- one", "<p>text</p><ul><li>one</li></ul>"),
    ("text\n1986. A year", "<p>text\n1986. A year</p>"),
    ("- one\nlazy", "<ul><li>one\nlazy</li></ul>"),
    # Quotes and rules
    ("> one\n> two", "<blockquote><p>one\ntwo</p></blockquote>"),
    ("> one\nlazy\n\nout", "<blockquote><p>one\nlazy</p></blockquote><p>out</p>"),
    ("> > deep\n\n> - list", "<blockquote><blockquote><p>deep</p></blockquote></blockquote><blockquote><ul><li>list</li></ul></blockquote>"),
    ("one\n\n---\n\n* * *", "<p>one</p><hr><hr>"),
    # Tables
    ("| a | b |\n|---|--:|\n| 1 | 2 |", "<table><tr><th>a</th><th class=\"right\">b</th></tr><tr><td>1</td><td class=\"right\">2</td></tr></table>"),
    ("a | b\n:-: | -\n`x|y` | \\|", "<table><tr><th class=\"center\">a</th><th>b</th></tr><tr><td class=\"center\"><code>x|y</code></td><td>|</td></tr></table>"),
    ("| a | b |\n|---|---|\n| 1 |\n| 1 | 2 | 3 |", "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td></td></tr><tr><td>1</td><td>2</td></tr></table>"),
    ("| a | b |\n| 1 | 2 |", "<p>| a | b |\n| 1 | 2 |</p>"),
    ("| a |\n|---|\n| **x** |\n\nafter", "<table><tr><th>a</th></tr><tr><td><strong>x</strong></td></tr></table><p>after</p>"),
    # Links
    ("[one](https://example.org/a)", "<p>" + link("https://example.org/a", "one") + "</p>"),
    ("[*one*](<https://example.org/a b> \"title\")", "<p>" + link("https://example.org/a%20b", "<em>one</em>") + "</p>"),
    ("see https://example.org/x_(y). And", "<p>see " + link("https://example.org/x_(y)", "https://example.org/x_(y)") + ". And</p>"),
    ("<https://example.org> <me@example.org>",
     "<p>" + link("https://example.org/", "https://example.org") + " " + link("mailto:me@example.org", "me@example.org") + "</p>"),
    ("[x](javascript:alert(1)) [y](JaVaScRiPt:alert(1)) [z](data:text/html,x)",
     "<p>[x](javascript:alert(1)) [y](JaVaScRiPt:alert(1)) [z](data:text/html,x)</p>"),
    ("[x](/relative) [y](file:///etc/passwd) [z] (no)", "<p>[x](/relative) [y](file:///etc/passwd) [z] (no)</p>"),
    ("[a [b](https://b.org) c](https://c.org)", "<p>[a " + link("https://b.org/", "b") + " c](" + link("https://c.org/", "https://c.org") + ")</p>"),
    # What stays text
    ("<img src=x onerror=alert(1)>", "<p>&lt;img src=x onerror=alert(1)></p>"),
    ("<b>no</b> <script>no</script>", "<p>&lt;b>no&lt;/b> &lt;script>no&lt;/script></p>"),
    ("![alt](javascript:x) ![a](/b.png)", "<p>![alt](javascript:x) ![a](/b.png)</p>"),
    ("&lt;b&gt; &amp;amp; &#x41; &#0; &nope;", "<p>&lt;b> &amp;amp; A \ufffd &amp;nope;</p>"),
]

# Texts of 100,000 characters that slow renderers take seconds for.
HOSTILE = {
    "prose": "Some *words* with `code`, [a link](https://example.org/a) and **more** of them.\n\n",
    "stars": "*", "stars and letters": "*a ", "open strong": "**a *b ", "brackets": "[", "links": "[a](", "images": "![a](b",
    "backticks": "` `` ``` ", "quotes": "> ", "lists": "- ", "nested lists": "- a\n  ", "pipes": "|", "table rows": "|a|b|\n|-|-|\n", "dashes": "-",
    "angles": "<", "entities": "&amp;", "blanks": " ", "newlines": "\n", "hashes": "#", "underscores": "_a_b", "tildes": "~~a ",
    "addresses": "https://a.b/((", "backslashes": "\\", "fences": "```\n", "one word": "a",
}
