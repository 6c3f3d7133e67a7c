# SPDX-License-Identifier: Apache-2.0
"""Makes the golden files of the chat template tests: what jinja2 renders.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install jinja2==3.1.6 tokenizers==0.23.3
    /tmp/venv/bin/python tools/oracle/make_chat_goldens.py --templates DIRECTORY

DIRECTORY holds the chat templates of llama.cpp's models/templates as *.jinja. Writes tests/golden/chat. The text of a
template is written only where its licence is free (FREE below); of the others what they render. With --generate N it
prints N generated templates and what they render as lines of JSON instead, for a comparison of more than is committed.
"""

import argparse
import datetime
import hashlib
import json
import random
import subprocess
from pathlib import Path

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden/chat"
NOW = datetime.datetime(2026, 11, 23, 17, 20)

# Apache-2.0 or MIT.
FREE = (
    "Qwen-QwQ-32B",
    "Qwen-Qwen2.5-7B-Instruct",
    "Qwen-Qwen3-0.6B",
    "Qwen3-Coder",
    "Qwen3.5-4B",
    "Mistral-Small-3.2-24B-Instruct-2506",
    "mistralai-Mistral-Nemo-Instruct-2407",
    "mistralai-Ministral-3-14B-Reasoning-2512",
    "unsloth-mistral-Devstral-Small-2507",
    "deepseek-ai-DeepSeek-V3.1",
    "deepseek-ai-DeepSeek-V3.2",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",
    "openai-gpt-oss-120b",
    "GLM-4.6",
    "GLM-4.7-Flash",
)


class GenerationTag(Extension):
    """The tag `generation`, which transformers has: its body is rendered."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, "jinja2.ext.loopcontrols"]
    )
    env.filters["tojson"] = lambda x, ensure_ascii=False, indent=None, separators=None, sort_keys=False: json.dumps(
        x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: NOW.strftime(form)
    return env


ENV = environment()


def render(source, variables):
    """{"out": text} or {"error": message}."""
    try:
        return {"out": ENV.from_string(source).render(**variables)}
    except Exception as error:  # whatever the language refuses
        return {"error": f"{type(error).__name__}: {error}"[:200]}


# ---- vectors of the language

VECTORS = r"""
{{ 7/2 }} {{ -7//2 }} {{ -7%3 }} {{ -2**2 }} {{ 4/2 }}
{{ 1e3 }} {{ 1e16 }} {{ 1234567.0 }} {{ 1e-5 }} {{ 0.1+0.2 }}
{{ [1,'a',none,1.0,true] }} {{ {'a':"it's"} }} {{ (1,) }} {{ () }} {{ 1, 2 }}
{{ 'a' ~ 1 ~ none }}{{ 'x' 'y' }}
[{{ u }}{{ u|default('d') }}{{ ''|default('d') }}{{ ''|default('d',true) }}{{ u is none }}]
{{ u.x }}
{{ u() }}
{{ u + 1 }}
{{ u ~ 'x' }}{{ u|length }}{{ u|upper }}{{ u|join }}{{ u|list }}{% for x in u %}{{ x }}{% endfor %}{{ 1 in u }}
{{ [1][5].x }}
{{ [1][5] }}|{{ 'abc'[7] }}|{{ {}['x'] }}|{{ none.x }}|{{ 5['x'] }}|{{ none['x'] }}
{{ [1,2,3][::-1] }} {{ 'abcdef'[-2:] }} {{ 'héllo'|length }} {{ 'héllo'[1:3] }} {{ 'héllo'[::2] }} {{ 'abc'[5:] }} {{ 'abcdef'[4:1:-2] }}
{{ 1==1.0 }} {{ true==1 }} {{ none==false }} {{ 1<2<3 }} {{ 'a' < 'B' }} {{ [1,2] < [1,3] }} {{ 1 != 2 == 2 }}
{{ {'b':[1,{'c':none}],'e':[],'f':{}}|tojson(indent=2) }}
{{ {'b':[1,{'c':none}],'e':[],'f':{}}|tojson(indent='--') }}
{{ [1,2.0,1e16,1e-7]|tojson(separators=(',',':')) }} {{ 'é😀"</x>'|tojson }} {{ 'é😀\x01\n'|tojson(ensure_ascii=true) }}
{{ {'b':1,'a':{'d':1,'c':2}}|tojson(sort_keys=true) }} {{ {1:2,true:3,none:4,1.5:5}|tojson }} {{ (1,2)|tojson }}
{{ u|tojson }}
{{ {(1,2):3}|tojson }}
{{ ['b','A','c']|sort }} {{ {'b':1,'a':2}|dictsort }} {{ ['a',1,none]|join(', ') }}
{{ ['b','A','c']|sort(case_sensitive=true) }} {{ [3,1,2]|sort(reverse=true) }} {{ [{'a':2},{'a':1}]|sort(attribute='a') }}
{{ {'b':1,'a':2,'C':0}|dictsort(true) }} {{ {'b':1,'a':2}|dictsort(by='value') }} {{ {'b':1,'a':2}|dictsort(reverse=true) }}
{{ ' a  b '.split() }}{{ 'a,b,,c'.split(',') }}{{ 'a-b-c'.split('-',1) }}{{ 'xxaxx'.strip('x') }}
{{ 'a-b-c'.rsplit('-',1) }}{{ ' a b  c '.split(none,1) }}{{ ' a b  c '.rsplit(none,1) }}{{ 'aaa'.rsplit('aa') }}{{ 'aaa'.split('aa') }}
{{ 'abc'.split('') }}
{% set x=1 %}{% for i in [1,2] %}{% set x=9 %}{% endfor %}{{ x }}
{% set n=namespace(a=1) %}{% for i in [1,2] %}{% set n.a=n.a+i %}{% endfor %}{{ n.a }}
{% for x in [1,2,3] if x!=2 %}{{ loop.index }}/{{ loop.length }}:{{ x }}{{ ',' if not loop.last }}{% endfor %}
{% macro m(a,b='B') %}{{ a }}{{ b }}{% endmacro %}{{ m('x') }}{{ m(b=1,a=2) }}{{ m() }}
{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1,2,3,k=4) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1,2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}
{% for i in [1] %}{% macro m() %}[{{ i }}]{% endmacro %}{{ m() }}{% endfor %}{% macro k() %}[{{ i }}]{% endmacro %}{% for i in [1] %}{{ k() }}{% endfor %}
{% set v=1 %}{% macro m() %}{{ v }}{% endmacro %}{% set v=2 %}{{ m() }}
{{ {'items':5}.items is callable }}{{ {'items':5}['items'] }}{{ {'get':1}.get('get') }}{{ {'x':{'y':[1,2]}}.x.y[1] }}
a\n  {% if true %}\n  b\n  {% endif %}\nc\n
a\n  {%- if true -%}\n  b\n  {%- endif %}\nc\n\n
  {#- c -#}  \n  y {%+ if true %}z{% endif %}
  {% if true %}\n\n x\n{%- endif %}\n  {{ 1 }}\n  {{- 2 -}}  \n 3 {# c #}\n4
a {% raw %} {{ x }} {% endraw %} b {%- raw -%}  {% y %}  {%- endraw -%}  c
x\r\n{% if true %}\r\ny\r{% endif %}z\r\n
{{ '\n\t\\\'\"\x41\u00e9\d' }}{{ "a\
b" }}
{{ 'a'+1 }}
{{ 1 < 'a' }}
{{ ['a']+('b',) }}
{{ 7 % 0 }}
{{ 1 // 0.0 }}
{{ ''.__class__ }}|{{ [].__class__.__mro__ }}
{{ 2.5|round }} {{ 3.567|round(1) }} {{ 'x'|int }} {{ '3.7'|int }} {{ 1.25|round(1) }} {{ 1234.5|round(-2) }} {{ 3|round }} {{ 2.1|round(0,'ceil') }} {{ 2.9|round(method='floor') }}
{{ '0x1f'|int(0,16) }} {{ ' 42 '|int }} {{ '1_000'|int }} {{ true|int }} {{ -3.9|int }} {{ none|int(7) }} {{ '1e3'|float }} {{ 'x'|float(2.5) }} {{ 'inf'|float }}
{{ -5|abs }} {{ (-5)|abs }} {{ -5.5|abs }} {{ 5|string ~ 'x' }} {{ none|string }} {{ 'a b-c'|title }} {{ 'hELLO wORLD'|capitalize }} {{ 'ß'|upper }} {{ "it's"|title }} {{ "it's".title() }}
{{ ['a','b']|first }}{{ ['a','b']|last }}{{ 'xyz'|first }}{{ 'xyz'|last }}{{ []|first }}{{ {'k':1}|first }}
{{ [1,2,3]|sum }} {{ [{'a':1},{'a':2}]|sum('a') }} {{ [1.5,2]|sum(start=1) }} {{ [3,1]|min }}{{ [3,1]|max }}{{ ['b','A']|min }}{{ []|max }}
{{ [1,2,3,4,5]|batch(2,'x')|list }} {{ [1,2,3,4,5]|slice(2)|list }} {{ [1,2,3,4]|slice(3,'f')|list }} {{ ['a','A','b']|unique|list }} {{ 'abc'|reverse }} {{ [1,2]|reverse|list }}
{% for g, l in [{'r':'u','c':1},{'r':'a','c':2},{'r':'u','c':3}]|groupby('r') %}{{ g }}={{ l|map(attribute='c')|list }};{% endfor %}
{{ ['a','b']|map('upper')|join('-') }} {{ [{'a':{'b':1}},{'a':{}}]|map(attribute='a.b', default=0)|list }} {{ [1,2,3]|select('odd')|list }}{{ [0,1,'']|select|list }}{{ [1,2,3]|reject('eq',2)|list }}
{{ [{'r':'x'},{'r':'y'}]|selectattr('r','equalto','x')|list }}{{ [{'r':'x'},{}]|rejectattr('r')|list }}{{ [{'r':1},{}]|selectattr('r','defined')|list|length }}
{{ 'a\nb\n\nc'|indent }}|{{ 'a\nb'|indent(2,true) }}|{{ 'a\n\nb'|indent(2,blank=true) }}|{{ 'a\nb'|indent('> ', first=true) }}
{{ 'a b  c'|wordcount }} {{ 'ab'|center(7) }}| {{ '<a href="x">\'&'|e }} {{ 'aXbX'|replace('X','-',1) }} {{ 12|replace(1,3) }} {{ '  x '|trim }}| {{ 'xxyxx'|trim('x') }}
{{ 1 is number }}{{ true is number }}{{ true is integer }}{{ 1.0 is float }}{{ 'a' is string }}{{ [] is sequence }}{{ {} is mapping }}{{ 'a' is iterable }}{{ 1 is iterable }}{{ u is iterable }}{{ none is none }}{{ u is defined }}{{ u is undefined }}
{{ 3 is odd }}{{ 3 is even }}{{ 9 is divisibleby 3 }}{{ 1 is sameas 1 }}{{ true is true }}{{ 1 is true }}{{ 'a' is in 'abc' }}{{ 2 is gt 1 }}{{ 2 is le(2) }}{{ 'ab' is lower }}{{ 'AB' is upper }}{{ 'Ab' is upper }}{{ true is boolean }}
{{ 'a' is not string }}{{ not 'a' is string }}{{ 1 if 'x' is string else 2 }}{{ 1 if 'x' is none }}
{{ 'abc'.startswith('ab') }}{{ 'abc'.startswith(('x','a')) }}{{ 'abc'.endswith('bc',1) }}{{ 'abcabc'.find('c',3) }}{{ 'abc'.find('z') }}{{ 'abcabc'.count('bc') }}{{ 'abc'.index('b') }}
{{ 'abc'.index('z') }}
{{ 'a\nb\r\nc'.splitlines() }}{{ 'a\nb'.splitlines(true) }}{{ '7'.zfill(3) }}{{ '-7'.zfill(4) }}{{ 'ab'.removeprefix('a') }}{{ 'ab'.removesuffix('b') }}{{ '12'.isdigit() }}{{ 'ab1'.isalpha() }}{{ ' '.isspace() }}{{ ''.isdigit() }}
{{ '{} {1} {a} {{}} {b[0]}'.replace('{1}','').format(1, 2, a='x', b=[9]) }}{{ '{0}{1}{0}'.format('a','b') }}{{ ', '.join(['a','b']) }}
{{ {'a':1}.get('a') }}{{ {'a':1}.get('b') }}{{ {'a':1}.get('b',2) }}{{ {'a':1}.keys()|list }}{{ {'a':1}.values() }}{{ {'a':1}.items() }}{{ {'a':1,'b':2}|items|list }}{{ [1,2,1].count(1) }}{{ [1,2].index(2) }}
{{ range(3)|list }}{{ range(1,7,2)|list }}{{ range(3) }}{{ range(5,0,-2)|list }}{{ range(3)|length }}{{ 2 in range(3) }}{{ dict(a=1,b=2) }}{{ dict([('a',1)]) }}{{ dict.fromkeys(['a','b'],0) }}
{{ range(100001)|length }}
{{ raise_exception('no ' ~ 1) }}
{{ strftime_now('%Y-%m-%d %H:%M %B %d %a') }}
{% for i in [1,2,3] %}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.depth }}{{ loop.cycle('a','b') }}{{ loop.changed(i>1) }};{% else %}none{% endfor %}
{% for x in [] %}{{ x }}{% else %}none{% endfor %}{% for k, v in {'a':1}.items() %}{{ k }}{{ v }}{% endfor %}{% for a, (b, c) in [(1,(2,3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for x in [1,2,3,4] %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 4 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% for x in [1,2] %}{% for y in [3,4] %}{% if y == 4 %}{% break %}{% endif %}{{ x }}{{ y }}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}
{% for x in 5 %}{% endfor %}
{% for a, b in [(1,2,3)] %}{% endfor %}
{% set x %}a{{ 1 }}b{% endset %}{{ x }}{% set y | upper %}q{% endset %}{{ y }}{% filter upper|replace('A','b') %}a{{ x }}{% endfilter %}{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set t = 1, 2 %}{{ t }}
{% generation %}a{% set q = 1 %}{{ q }}{% endgeneration %}{{ q }}{% with a=1, b=2 %}{{ a+b }}{% endwith %}{{ a }}
{% if 0 %}a{% elif '' %}b{% elif [0] %}c{% else %}d{% endif %}{{ 1 and 0 or 'x' }}{{ not 0 }}{{ none or [] or 'z' }}{{ 'a' and 'b' }}
{{ 'a' in 'abc' }}{{ 'z' not in ['a'] }}{{ 'k' in {'k':1} }}{{ not 1 in [1] }}{{ 1 in 'a' }}
{{ 5 in 5 }}
{{ 'ab' * 3 }}{{ [1] * 2 }}{{ 2 * 'x' }}{{ true + 1 }}{{ 2 ** 3 ** 2 }}{{ 2 ** -1 }}{{ 7.5 // 2 }}{{ -7.5 % 2 }}{{ 10 % -3 }}{{ 1 / 3 }}{{ 1e300 * 1e10 }}{{ 5 // -2 }}{{ 0.1 * 3 }}{{ 1_000 }}{{ 0xff }}{{ 0b101 }}{{ 0o17 }}
{{ [1,2,3][1:] + [4] }}{{ (1,2) + (3,) }}{{ [[1,2],[3]] }}{{ {'a':(1,)} }}{{ "a'b\"c" | list }}{{ ['é\u200b\n'] }}
{{ 'x' if true }}{{ 'x' if false }}|{{ 'x' if false else 'y' if false else 'z' }}
{{ namespace(a=1).a }}{{ namespace({'b':2}).b }}{% set ns = namespace() %}{% set ns.l = [] %}{% set ns.l = ns.l + [1] %}{{ ns.l }}{{ ns.zz }}
{% set d = {} %}{% set d.x = 1 %}
{{ [1, 2 }}
{{ 'abc }}
{% if %}{% endif %}
{% for x in y %}
{% endif %}
{% unknown %}
{% include 'x' %}
{% extends 'x' %}
{{ 1 if }}
{{ a b }}
{{ 'a' | nosuchfilter }}
{{ 'a' is nosuchtest }}
{{ [x for x in y] }}
{# unfinished
{{ messages }}{{ messages[0]['content'] | tojson }}{{ messages|length }}{{ messages[-1].role }}{{ messages|map(attribute='role')|join(',') }}
{% set loop_messages = messages[1:] if messages[0].role == 'user' else messages %}{{ loop_messages|length }}{{ (messages|selectattr('role','equalto','assistant')|list)[-1].content }}
{{ messages|selectattr('role','equalto','nobody') and 'iterators are true' }}
{{ ''.join(messages|map(attribute='content')) }}{{ messages[0].content.upper().lower().title().strip()[:3] }}{{ messages[0].keys()|list }}
{{ 1.0 }}{{ 100000000000000000.0 }}{{ 123456789.123456789 }}{{ 1e22 }}{{ 5e-324 }}{{ 1.7976931348623157e308 }}{{ 0.0001 }}{{ 0.00001 }}{{ -0.0 }}{{ 1e15 }}{{ 9007199254740993 }}
{{ 'ΑΣ'.lower() }}{{ 'ΑΣΑ'.lower() }}{{ 'İ'.lower()|length }}{{ 'ǆ'.title() }}{{ 'ﬁn'.upper() }}{{ 'ŉ'.upper() }}{{ 'straße'|title }}
{{ '\u00a0x\u3000'.strip() }}|{{ 'a\x1cb\x85c\u2028d'.splitlines() }}|{{ 'a\u2003b'.split() }}
"""

BASE_VARIABLES = {
    "messages": [{"role": "user", "content": "Hi <b>"}, {"role": "assistant", "content": "Yo", "n": 1}],
    "y": [1, 2],
    "d": {"a": 1, "b": [1, 2.5, None], "items": "x"},
}


def unescape(line):
    """In the list above \\n and \\r outside of tags stand for line breaks."""
    out, at, depth = "", 0, 0
    while at < len(line):
        if line.startswith(("{{", "{%", "{#"), at):
            depth += 1
        if line.startswith(("}}", "%}", "#}"), at):
            depth = max(depth - 1, 0)
        if depth == 0 and line.startswith(("\\n", "\\r"), at):
            out += "\n" if line[at + 1] == "n" else "\r"
            at += 2
        else:
            out += line[at]
            at += 1
    return out


def vectors():
    lines = []
    for line in VECTORS.strip("\n").split("\n"):
        if lines and lines[-1].endswith("\\"):
            lines[-1] += "\n" + line
        else:
            lines.append(line)
    return [unescape(line) for line in lines]


# ---- generated templates

class Generator:
    """Templates at random, from the parts of the language that chat templates use."""

    STRINGS = ["''", "'a'", "'Hello, World'", "' x\\ty '", "'ÄÖ ß'", "'a-b-c'", "'<|im_end|>'", "'12'", "'-3.5'", "'it\\'s'", "'日本 語'"]
    NUMBERS = ["0", "1", "2", "-3", "7", "2.5", "1e3", "0.1", "true", "100"]
    NAMES = ["s", "t", "n", "f", "l", "d", "m", "u", "b", "x", "y", "messages"]
    FILTERS = ["length", "upper", "lower", "title", "capitalize", "trim", "string", "first", "last", "list", "tojson", "int", "float",
               "abs", "round", "sort|list", "unique|list", "join", "join('-')", "reverse|list", "default('D')", "default('D', true)",
               "replace('a','bb')", "sum", "min", "max", "items|list", "dictsort", "wordcount", "e", "safe", "count", "indent(2)",
               "indent(1, true)", "center(9)", "map('string')|list", "map('upper')|list", "select('string')|list", "select|list",
               "reject('none')|list", "batch(2)|list", "slice(2)|list", "tojson(indent=1)", "tojson(sort_keys=true)", "round(1)",
               "selectattr('role','equalto','user')|list", "map(attribute='role')|list", "map(attribute='content', default='-')|join",
               "groupby('role')|length", "tojson(ensure_ascii=true)", "int(9)", "sort(reverse=true)", "list|length", "string|length"]
    TESTS = ["defined", "undefined", "string", "none", "mapping", "iterable", "sequence", "number", "integer", "float", "boolean", "true",
             "false", "odd", "even", "divisibleby(2)", "eq(1)", "ne('a')", "in([1,'a'])", "lower", "upper", "sameas(none)", "callable"]
    METHODS = ["strip()", "lstrip()", "rstrip('c')", "split()", "split('-')", "split('-', 1)", "rsplit('-', 1)", "upper()", "lower()", "title()",
               "capitalize()", "startswith('a')", "endswith(('c','d'))", "replace('-', '+')", "replace('', '.')", "find('l')", "count('l')", "splitlines()",
               "zfill(6)", "isdigit()", "isalpha()", "isspace()", "removeprefix('a')", "removesuffix('c')", "join(['p','q'])", "get('a')",
               "get('zz', 3)", "keys()|list", "values()|list", "items()|list", "index(1)", "count(1)", "a", "b", "role", "content", "format(1, 2)"]
    BINARY = ["+", "-", "*", "/", "//", "%", "~", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]

    def __init__(self, seed):
        self.r = random.Random(seed)

    def expression(self, depth):
        r = self.r
        if depth <= 0 or r.random() < 0.2:
            kind = r.random()
            return r.choice(self.NAMES) if kind < 0.5 else r.choice(self.STRINGS) if kind < 0.75 else r.choice(self.NUMBERS)
        kind = r.randrange(14)
        inner = lambda: self.expression(depth - 1)
        if kind < 3:
            return f"{inner()}|{r.choice(self.FILTERS)}"
        if kind == 3:
            return f"({inner()}) is {r.choice(['', 'not '])}{r.choice(self.TESTS)}"
        if kind == 4:
            return f"({inner()}).{r.choice(self.METHODS)}"
        if kind < 8:
            return f"{inner()} {r.choice(self.BINARY)} {inner()}"
        if kind == 8:
            bounds = [r.choice(["", "0", "1", "-1", "2", "-3"]) for _ in range(r.choice([2, 2, 3]))]
            return f"{r.choice(self.NAMES)}[{':'.join(bounds)}]"
        if kind == 9:
            return f"({inner()})[{r.choice(['0', '-1', '1', repr('a'), repr('role'), inner()])}]"
        if kind == 10:
            return f"({inner()} if {inner()}{r.choice(['', ' else ' + inner()])})"
        if kind == 11:
            return "[" + ", ".join(inner() for _ in range(r.randrange(4))) + "]"
        if kind == 12:
            return "{" + ", ".join(f"{r.choice(self.STRINGS)}: {inner()}" for _ in range(r.randrange(3))) + "}"
        return f"{r.choice(['not ', '-', '+', ''])}({inner()})"

    def tag(self, inside, block=True):
        left = self.r.choice(["", "", "", "-", "+" if block else ""])
        right = self.r.choice(["", "", "", "-"])
        begin, end = ("{%", "%}") if block else ("{{", "}}")
        return f"{begin}{left} {inside} {right}{end}"

    def text(self):
        return "".join(self.r.choice([" ", "  ", "\n", "\n", "a", "B c", "<|x|>", "\t", "é", "{# c #}", "{#- c -#}\n"]) for _ in range(self.r.randrange(4)))

    def block(self, depth, loop=False):
        return "".join(self.text() + self.statement(depth, loop) for _ in range(self.r.randrange(1, 4))) + self.text()

    def statement(self, depth, loop):
        r = self.r
        kind = r.randrange(12) if depth > 0 else 0
        if kind < 4:
            return self.tag(self.expression(2), block=False)
        if kind < 6:
            out = self.tag(f"if {self.expression(2)}") + self.block(depth - 1, loop)
            if r.random() < 0.3:
                out += self.tag(f"elif {self.expression(1)}") + self.block(depth - 1, loop)
            if r.random() < 0.5:
                out += self.tag("else") + self.block(depth - 1, loop)
            return out + self.tag("endif")
        if kind < 8:
            iterable = r.choice(["messages", "l", "[1, 2, 3]", "'abc'", "range(3)", "d.items()", "d", self.expression(1)])
            test = r.choice(["", "", f" if {self.expression(1)}"])
            out = self.tag(f"for {r.choice(['x', 'y', 'm', 'x, y'])} in {iterable}{test}") + self.block(depth - 1, True)
            if r.random() < 0.5:
                out += self.tag("loop." + r.choice(["index", "index0", "first", "last", "length", "revindex", "previtem", "nextitem", "depth"]), block=False)
            if r.random() < 0.2:
                out += self.tag("else") + self.block(depth - 1, False)
            return out + self.tag("endfor")
        if kind == 8:
            return self.tag(f"set {r.choice(['x', 'y', 's', 'n', 'q'])} = {self.expression(2)}")
        if kind == 9:
            return self.tag("set ns = namespace(a=1)") + self.tag(f"set ns.a = {self.expression(1)}") + self.tag("ns.a", block=False)
        if kind == 10:
            body = self.block(depth - 1, False)
            return self.tag("macro g(p, q=2)") + body + self.tag("p ~ q", block=False) + self.tag("endmacro") + self.tag(f"g({self.expression(1)})", block=False)
        if loop and r.random() < 0.5:
            return self.tag(f"if {self.expression(1)}") + self.tag(r.choice(["break", "continue"])) + self.tag("endif")
        return self.tag("set z") + self.block(depth - 1, False) + self.tag("endset") + self.tag("z", block=False)


GENERATED_VARIABLES = {
    "s": "abc-def",
    "t": "Two\nlines ",
    "n": 5,
    "f": 2.5,
    "b": True,
    "l": [3, 1, 2, "a", None, 1.5],
    "d": {"a": 1, "b": "two", "role": "user", "items": [1]},
    "m": {"role": "user", "content": "Hi"},
    "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "U é"}, {"role": "assistant", "content": None, "a": 1}],
}

# What a program's memory or another type of ours would show: such results are not compared.
UNSHOWN = (" at 0x", "<function", "<built-in", "<bound method", "<generator", "<class", "<Macro", "<Loop", "iterator object", "Undefined", "<namedtuple")


def generated(count, seed=20261123):
    made, number = [], 0
    while len(made) < count:
        number += 1
        source = Generator(seed + number).block(2)
        result = render(source, json.loads(json.dumps(GENERATED_VARIABLES)))
        text = result.get("out", "")
        if any(part in text for part in UNSHOWN) or len(text) > 4000 or len(source) > 3000:
            continue
        # Integers of ours have 64 bits, and values of `safe` and `e` are strings like others.
        if "error" in result and ("int too large" in result["error"] or "Exceeds the limit" in result["error"]):
            continue
        # `%` with a string formats it in Python, which is not in our language; few errors are enough.
        if "' %" in source or "% s" in source or "% t" in source:
            continue
        if "error" in result and number % 8:
            continue
        if "**" in source or (("|e" in source or "|safe" in source) and "+" in source):
            continue
        # The error of an assertion at compile time is ours only when it is reached; here all names are known.
        made.append({"source": source, **({"out": text} if "out" in result else {"error": True})})
    return made


# ---- conversations

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Tells the weather.\nFor a city.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Name of the city"},
                    "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                    "days": {"type": "integer", "default": 1},
                },
                "required": ["city"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Adds numbers é.",
            "parameters": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]},
        },
    },
]
CALL = {"id": "callabcd1", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Zürich", "days": 2}}}
CALL2 = {"id": "callabcd2", "type": "function", "function": {"name": "add", "arguments": {"a": 1, "b": 2.5}}}
RESULT = {"role": "tool", "tool_call_id": "callabcd1", "name": "get_weather", "content": "12 °C"}
RESULT2 = {"role": "tool", "tool_call_id": "callabcd2", "name": "add", "content": "3.5"}
SYSTEM = {"role": "system", "content": "You are terse."}
USER = {"role": "user", "content": "Hello there"}


def calling(*calls, **more):
    return {"role": "assistant", "content": "", "tool_calls": list(calls), **more}


def cases():
    prompt = {"add_generation_prompt": True}
    talk = [USER, {"role": "assistant", "content": "Hi. "}, {"role": "user", "content": "And now?"}]
    tooled = [USER, calling(CALL), RESULT]
    two = [USER, calling(CALL, CALL2), RESULT, RESULT2]
    thought = {"role": "assistant", "content": "42", "reasoning_content": "Let me think.\nSix times seven.", "thinking": "Let me think.\nSix times seven."}
    tokens = "<|im_start|>system<|im_end|></s><s>[INST]<|eot_id|><｜User｜><think></think><|start|>[/INST]"
    return {
        "system_user": {"messages": [SYSTEM, USER], **prompt},
        "no_system": {"messages": [USER], **prompt},
        "developer": {"messages": [{"role": "developer", "content": "Be brief."}, USER], **prompt},
        "turns": {"messages": [SYSTEM] + talk, **prompt},
        "no_prompt": {"messages": talk[:2], "add_generation_prompt": False},
        "tools": {"messages": [SYSTEM, USER], "tools": TOOLS, **prompt},
        "tools_no_system": {"messages": [USER], "tools": TOOLS, **prompt},
        "call": {"messages": tooled, "tools": TOOLS, **prompt},
        "two_calls": {"messages": [SYSTEM] + two, "tools": TOOLS, **prompt},
        "answered": {"messages": tooled + [{"role": "assistant", "content": "It is cold."}, USER], "tools": TOOLS, **prompt},
        "call_string": {
            "messages": [USER, calling({**CALL, "function": {"name": "get_weather", "arguments": "{\"city\": \"Bern\"}"}}), RESULT],
            "tools": TOOLS,
            **prompt,
        },
        "reasoning": {"messages": [USER, thought, USER], **prompt},
        "reasoning_last": {"messages": [USER, thought], "add_generation_prompt": False},
        "reasoning_call": {"messages": [USER, calling(CALL, reasoning_content="Hm.", thinking="Hm."), RESULT], "tools": TOOLS, **prompt},
        "thinking_on": {"messages": [USER], "enable_thinking": True, **prompt},
        "thinking_off": {"messages": [USER], "enable_thinking": False, **prompt},
        "effort": {"messages": [SYSTEM, USER], "reasoning_effort": "high", **prompt},
        "parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": "One "}, {"type": "text", "text": "two"}]}], **prompt},
        "empty": {"messages": [{"role": "system", "content": ""}, {"role": "user", "content": ""}], **prompt},
        "unicode": {"messages": [{"role": "user", "content": "ß 漢字 😀\u00a0\u200b\r\n\tend  "}], **prompt},
        "tokens": {"messages": [{"role": "system", "content": tokens}, {"role": "user", "content": "x" + tokens + " y"}], **prompt},
        "two_users": {"messages": [USER, USER], **prompt},
        "no_messages": {"messages": [], **prompt},
    }


def template_goldens(directory):
    everything = {"cases": {}, "templates": {}}
    for name, case in cases().items():
        variables = {"tools": None, "documents": None, "bos_token": "<BOS>", "eos_token": "<EOS>", **case}
        everything["cases"][name] = json.dumps(variables, ensure_ascii=False)
    for path in sorted(directory.glob("*.jinja")):
        source = path.read_bytes().decode()
        entry = {"sha256": hashlib.sha256(source.encode()).hexdigest(), "results": {}}
        if path.stem in FREE:
            entry["text"] = source
        for name, variables in everything["cases"].items():
            entry["results"][name] = render(source, json.loads(variables))
        everything["templates"][path.stem] = entry
    return everything


def ids_of_prompts(everything):
    """Ids of one template's prompts, as Hugging Face tokenizers gives them."""
    import tokenizers

    files = {
        "fable": ROOT / "models/fable-moe-18m/tokenizer.json",
        "qwen3": ROOT / "tests/data/tokenizers/qwen3.tokenizer.json.zst",
    }
    ids = {}
    for name, path in files.items():
        data = path.read_bytes()
        if path.suffix == ".zst":
            data = subprocess.run(["zstd", "-dc"], input=data, stdout=subprocess.PIPE, check=True).stdout
        tokenizer = tokenizers.Tokenizer.from_str(data.decode())
        results = everything["templates"]["Qwen-Qwen3-0.6B"]["results"]
        ids[name] = {
            case: tokenizer.encode(result["out"], add_special_tokens=False).ids for case, result in results.items() if "out" in result
        }
    return ids


def write(name, value):
    GOLDEN.mkdir(parents=True, exist_ok=True)
    text = (json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n").encode()
    command = ["zstd", "-q", "--ultra", "-22", "--no-check", f"--stream-size={len(text)}", "-c"]
    packed = subprocess.run(command, input=text, stdout=subprocess.PIPE, check=True).stdout
    (GOLDEN / name).write_bytes(packed)
    print(f"{name}: {len(text)} bytes, {len(packed)} packed")


def main():
    assert jinja2.__version__ == "3.1.6", jinja2.__version__
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--templates", type=Path)
    parser.add_argument("--generate", type=int)
    parser.add_argument("--seed", type=int, default=20261123)
    options = parser.parse_args()
    if options.generate:
        for item in generated(options.generate, options.seed):
            print(json.dumps({**item, "variables": GENERATED_VARIABLES}, ensure_ascii=False))
        return
    language = [{"source": source, **render(source, json.loads(json.dumps(BASE_VARIABLES)))} for source in vectors()]
    write("language.json.zst", {"variables": json.dumps(BASE_VARIABLES), "cases": language})
    write("generated.json.zst", {"variables": json.dumps(GENERATED_VARIABLES), "cases": generated(600)})
    if options.templates:
        everything = template_goldens(options.templates)
        everything["qwen3_ids"] = ids_of_prompts(everything)
        write("templates.json.zst", everything)


if __name__ == "__main__":
    main()
