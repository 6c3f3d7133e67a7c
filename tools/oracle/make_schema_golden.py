#!/usr/bin/env python3
"""Texts that fit JSON schemas, and texts that do not, as the package jsonschema judges them, for the grammars of bound answers.

    python -m venv /tmp/oracle && /tmp/oracle/bin/pip install jsonschema
    /tmp/oracle/bin/python tools/oracle/make_schema_golden.py make > tests/golden/schemas/schemas.jsonl
    SLUICE_SCHEMA_WALKS=/tmp/walks.jsonl build/dev/bin/test_engine --gtest_filter='SchemaOracle.*'
    /tmp/oracle/bin/python tools/oracle/make_schema_golden.py check /tmp/walks.jsonl

`make` prints a line for each of 200 schemas: the schema, texts that fit, texts that do not. Keys stand in the order of the alphabet,
schemas use what docs/serving.md lists, and alternatives of `oneOf` exclude each other, so that a grammar must take exactly what
the package takes. The same seed gives the same lines. `check` reads what the test writes, random walks through the grammar of each
of these schemas, and has the package judge them: every one must fit."""
import json
import random
import re
import sys

from jsonschema import Draft202012Validator, FormatChecker

PATTERNS = {"^[a-c]+$": ["abc", "c", "d", ""], r"^\d{3}-\d{4}$": ["555-1234", "5551234"], "^(fox|bee)s?$": ["fox", "bees", "ant"],
            "a.b": ["xa-by", "ab"], "^[^0-9]{1,4}$": ["xyz", "x1"], r"^\w+ \w+$": ["go on", "go"], "^(a|b){2,5}c?$": ["abac", "a"],
            "^[A-Z][a-z]{0,8}$": ["Fox", "fox"]}
FORMATS = {"date": ["2026-11-27", "2026-13-01", "27.11.2026"], "uuid": ["123e4567-e89b-12d3-a456-426614174000", "123e4567"],
           "date-time": ["2026-11-27T14:00:00Z", "2026-11-27"]}
WORDS = ["", "a", "fox", "été", "中文", "a\"b\\c", "line\nline", "0123456789", "😀!"]
FIXED = [
    True, {"type": "object"}, {"type": ["string", "null"]}, {"type": "array", "items": False}, {"enum": [1, "1", None, True, 1.5, [1, 2]]},
    {"type": "integer", "minimum": -3, "exclusiveMaximum": 12}, {"type": "integer", "minimum": 9999999999, "maximum": 10000000000},
    {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False, "minItems": 1},
    {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, "required": ["next"],
     "additionalProperties": False},
    {"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
                                                                               "name": {"type": "string", "maxLength": 4}},
                                                "required": ["kids"], "additionalProperties": False}}},
    {"oneOf": [{"type": "integer", "maximum": 0}, {"type": "string", "minLength": 2}, {"type": "object", "required": ["a"]}]},
    {"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
               {"type": "object", "properties": {"b": {"type": "boolean"}}}]},
    {"properties": {"a": {"const": 7}}, "required": ["a"]},
]


def text(draw, value, escapes):
    if isinstance(value, (dict, list)) and draw.random() < 0.15:
        return json.dumps(value, indent=draw.choice([1, 2]), ensure_ascii=False)
    return json.dumps(value, ensure_ascii=escapes and draw.random() < 0.3, separators=draw.choice([(",", ":"), (", ", ": ")]))


def random_schema(draw, depth):
    kind = draw.choice(["number", "integer", "string", "pattern", "format", "enum", "const", "types", "boolean"] +
                       ["array", "object", "object", "any", "all"] * (depth > 0))
    low = draw.randint(-50, 50)
    if kind == "integer":
        bounds = {draw.choice(["minimum", "exclusiveMinimum"]): low} if draw.random() < 0.7 else {}
        if draw.random() < 0.7:
            bounds[draw.choice(["maximum", "exclusiveMaximum"])] = low + draw.randint(2, 300)
        return {"type": "integer", **bounds}
    if kind == "string":
        least = draw.randint(0, 3)
        return {"type": "string", "minLength": least, "maxLength": least + draw.randint(0, 6)}
    if kind == "pattern":
        return {"type": "string", "pattern": draw.choice(list(PATTERNS))}
    if kind == "format":
        return {"type": "string", "format": draw.choice(list(FORMATS))}
    if kind == "enum":
        return {"enum": [scalar(draw) for _ in range(draw.randint(1, 4))]}
    if kind == "const":
        return {"const": draw.choice([scalar(draw), [1, "x"], {"k": 0}])}
    if kind == "types":
        return {"type": draw.sample(["null", "string", "integer", "boolean"], 2)}
    if kind in ("number", "boolean"):
        return {"type": kind}
    if kind == "any":
        return {"anyOf": [random_schema(draw, depth - 1) for _ in range(draw.randint(2, 3))]}
    if kind == "array":
        least = draw.randint(0, 2)
        schema = {"type": "array", "minItems": least, "maxItems": least + draw.randint(0, 3)}
        if draw.random() < 0.3:
            schema["prefixItems"] = [random_schema(draw, depth - 1)]
        return {**schema, "items": random_schema(draw, depth - 1)}
    schema = random_object(draw, "abc", depth)
    if kind == "all":
        schema["allOf"] = [random_object(draw, "de", depth)]
    elif draw.random() < 0.6:
        schema["additionalProperties"] = draw.choice([False, random_schema(draw, depth - 1)])
    return schema


def random_object(draw, names, depth):
    used = [name for name in names if draw.random() < 0.7]
    schema = {"type": "object", "properties": {name: random_schema(draw, depth - 1) for name in used}}
    needed = [name for name in used if draw.random() < 0.5]
    return {**schema, "required": needed} if needed else schema


def scalar(draw):
    return draw.choice([None, True, False, draw.randint(-99, 99), draw.randint(-99, 99) + 0.5, draw.choice(WORDS)])


def random_value(draw, schema, root, depth=0):
    """One that may fit."""
    if depth > 5 or not isinstance(schema, dict):
        return scalar(draw)
    inner = lambda one: random_value(draw, one, root, depth + 1)  # noqa: E731
    if "$ref" in schema:
        target = root
        for name in schema["$ref"].split("/")[1:]:
            target = target[name]
        return inner(target)
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return inner(draw.choice(schema[word]))
    if "enum" in schema:
        return draw.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type", "object" if "properties" in schema or "allOf" in schema else "null")
    kind = draw.choice(kind) if isinstance(kind, list) else kind
    if kind == "integer":
        low = schema.get("minimum", schema.get("exclusiveMinimum", -100))
        high = schema.get("maximum", schema.get("exclusiveMaximum", low + 200))
        return draw.choice([low, high, draw.randint(low, high)])
    if kind == "string":
        return draw.choice(PATTERNS.get(schema.get("pattern")) or FORMATS.get(schema.get("format")) or WORDS)
    if kind == "array":
        values = [inner(one) for one in schema.get("prefixItems", [])]
        count = schema.get("minItems", 0) + draw.randint(0, 2)
        return values[:count] + [inner(schema.get("items", True)) for _ in range(count - len(values))]
    if kind == "object":
        value = {}
        for layer in [schema] + schema.get("allOf", []):
            for name, one in layer.get("properties", {}).items():
                if name in layer.get("required", []) or draw.random() < 0.6:
                    value[name] = inner(one)
        if draw.random() < 0.2:
            value["zz"] = inner(schema.get("additionalProperties", True))
        return value
    return {"null": None, "boolean": draw.random() < 0.5, "number": draw.choice([0, -1.5, 1e30, 7, 0.001])}[kind]


def changed(draw, value):
    """The value, with one part of it another one."""
    if isinstance(value, list) and value and draw.random() < 0.8:
        at = draw.randrange(len(value))
        return draw.choice([value[:at] + value[at + 1:], value + [scalar(draw)], value[:at] + [changed(draw, value[at])] + value[at + 1:]])
    if isinstance(value, dict) and value and draw.random() < 0.8:
        name = draw.choice(list(value))
        if draw.random() < 0.4:
            return {key: one for key, one in value.items() if key != name}
        if draw.random() < 0.3:
            return {**value, "zz": scalar(draw)}
        return {key: changed(draw, one) if key == name else one for key, one in value.items()}
    return draw.choice([scalar(draw), [], {}])


def broken(draw, one):
    """The text, with a fault of writing."""
    at = draw.randrange(len(one) + 1)
    return draw.choice([one[:at], one + ",", "[" + one, one + one, one.replace("{", "{,", 1), re.sub(r"(?<![\w.])(\d)", r"0\1", one, count=1),
                        one.replace('"', "'"), "\ufeff" + one, one + " //"])


def read(one):
    def refuse(name):
        raise ValueError(name)
    return json.loads(one, parse_constant=refuse)


def fits(validator, one):
    try:
        value = read(one)
    except ValueError:
        return False
    return validator.is_valid(value)


def validator_of(schema):
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=FormatChecker(["date", "uuid", "time", "date-time"]))


def line_of(draw, schema):
    """Empty where no text fits, or all do."""
    validator, yes, no = validator_of(schema), [], []
    escapes = not any(word in json.dumps(schema) for word in ("enum", "const"))  # values that are given are written without
    for attempt in range(60):
        value = random_value(draw, schema, schema)
        one = text(draw, changed(draw, value) if attempt % 3 == 1 else value, escapes)
        if attempt % 6 == 5:
            one = broken(draw, one)
        found = yes if fits(validator, one) else no
        if len(one) < 60 and one not in found and len(found) < 4:
            found.append(one)
    return {"schema": schema, "yes": yes, "no": no} if yes and no else None


def make():
    draw, lines, seen = random.Random(26), [], set()
    while len(lines) < 200:
        schema = FIXED[len(lines)] if len(lines) < len(FIXED) else random_schema(draw, 2)
        key = json.dumps(schema)
        if key in seen or len(key) > 190 and len(lines) >= len(FIXED):
            continue
        line = line_of(draw, schema)
        if line is None:
            assert len(lines) >= len(FIXED), schema
            continue
        seen.add(key)
        lines.append(line)
    for line in lines:
        print(json.dumps(line, ensure_ascii=False, separators=(",", ":")))


def check(path):
    walks = wrong = schemas = 0
    with open(path, encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            validator = validator_of(row["schema"])
            schemas += 1
            for one in row["texts"]:
                walks += 1
                if not fits(validator, one):
                    wrong += 1
                    print(f"does not fit {json.dumps(row['schema'])}: {one!r}", file=sys.stderr)
    print(f"{walks} walks through {schemas} schemas, {wrong} do not fit")
    return 1 if wrong or not walks else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["make"]:
        make()
    elif len(sys.argv) == 3 and sys.argv[1] == "check":
        sys.exit(check(sys.argv[2]))
    else:
        sys.exit(__doc__)
