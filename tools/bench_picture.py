#!/usr/bin/env python3
"""Draws the picture of docs/performance.md and the README from the ledger bench/results/llamacpp.csv.

    tools/bench_picture.py            writes docs/images/beside-llamacpp.svg
    tools/bench_picture.py --check    fails if that file is not what the ledger gives
"""
import argparse
import os
import sys

import ledger

PICTURE = os.path.join(ledger.ROOT, "docs/images/beside-llamacpp.svg")
MACHINE = "zen4-avx512bf16-2cores-24gib"
SHAPE, REPEATED = "Qwen1.5-MoE-A2.7B", "24 % repeated"
BUDGETS = ["8 GB", "12 GB", "16 GB", "no limit"]
WHO = [("llama.cpp, as found", "#c9ced6"), ("llama.cpp, tuned", "#8a94a6"), ("Sluice", "#1f6feb")]
# Read-ahead is the disk's; load mode and threads of llama.cpp are its best in both.
LEGEND = {"llama.cpp, as found": "llama.cpp, read-ahead as found (8 MiB)", "llama.cpp, tuned": "llama.cpp, tuned: read-ahead 128 KiB"}
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 760, 360, 52, 84, 52


def rates(rows):
    """{(budget, who): the row of its decoding rate}, cold runs of one shape on one machine."""
    found = {}
    for row in rows:
        shape, repeated, budget, cache, who = row["case"].split("; ")
        if (row["machine"], shape, repeated, cache, row["measure"]) == (MACHINE, SHAPE, REPEATED, "cold", "decode tok/s"):
            found[budget, who] = row  # of several sittings the last
    missing = [f"{budget}; {who}" for budget in BUDGETS for who, _ in WHO if (budget, who) not in found]
    if missing:
        sys.exit(f"bench_picture.py: llamacpp.csv has no row of {MACHINE}, {SHAPE}, {REPEATED} for: {', '.join(missing)}")
    return found


def label(x, y, text, size=12, anchor="middle", color="#24292f", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{color}" font-weight="{weight}">{text}</text>')


def draw(found, title):
    top = max(row["high"] or row["median"] for row in found.values() if row["case"].endswith(tuple(who for who, _ in WHO)))
    most = int(top) + 1
    height = HEIGHT - TOP - BOTTOM

    def y_of(rate):
        return HEIGHT - BOTTOM - height * rate / most

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
             'font-family="DejaVu Sans, Helvetica, Arial, sans-serif">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
             label(LEFT, 24, "Tokens per second by memory limit", 15, "start", weight="bold"),
             label(LEFT, 44, f"{SHAPE}&#8217;s shape, 26.7 GiB; {title}; {REPEATED.replace(' repeated', '')} of the experts repeat from token to token",
                   12, "start", "#57606a")]
    x = LEFT
    for who, color in WHO:
        parts += [f'<rect x="{x}" y="56" width="12" height="12" fill="{color}"/>', label(x + 18, 66.5, LEGEND.get(who, who), 12, "start")]
        x += 40 + 7 * len(LEGEND.get(who, who))
    for rate in range(most + 1):
        parts += [f'<line x1="{LEFT}" x2="{WIDTH - 12}" y1="{y_of(rate):.1f}" y2="{y_of(rate):.1f}" stroke="#e5e8ec"/>',
                  label(LEFT - 8, y_of(rate) + 4, str(rate), 11, "end", "#57606a")]
    group = (WIDTH - 12 - LEFT) / len(BUDGETS)
    bar = group / 4.2
    for g, budget in enumerate(BUDGETS):
        left = LEFT + g * group + (group - 3 * bar) / 2
        ours = found[budget, "Sluice"]["median"]
        for i, (who, color) in enumerate(WHO):
            row = found[budget, who]
            at, rate = left + i * bar, row["median"]
            parts.append(f'<rect x="{at + 2:.1f}" y="{y_of(rate):.1f}" width="{bar - 4:.1f}" height="{y_of(0) - y_of(rate):.1f}" fill="{color}"/>')
            if row["low"] is not None:
                middle = at + bar / 2
                parts.append(f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{y_of(row["low"]):.1f}" y2="{y_of(row["high"]):.1f}" stroke="#0b3d91"/>')
            parts.append(label(at + bar / 2, y_of(row["high"] or rate) - 5, f"{rate:.2f}", 11))
            if who != "Sluice":
                factor = ours / rate
                parts.append(label(at + bar / 2, y_of(row["high"] or rate) - 18, f"&#215; {factor:.0f}" if factor >= 10 else f"&#215; {factor:.1f}", 10,
                                   color="#57606a"))
        parts.append(label(LEFT + (g + 0.5) * group, HEIGHT - BOTTOM + 18, budget, 12, weight="bold"))
    parts += [label(LEFT, HEIGHT - 12, "× : how many times as fast Sluice was. Lines: its least and most. Same weights, tokens and limit, cold, in turns.",
                    11, "start", "#57606a"), "</svg>"]
    return "\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    svg = draw(rates(ledger.read(os.path.join(ledger.RESULTS, "llamacpp.csv"))), ledger.title(MACHINE))
    if not options.check:
        with open(PICTURE, "w", encoding="utf-8") as file:
            file.write(svg)
        return
    with open(PICTURE, encoding="utf-8") as file:
        if file.read() != svg:
            sys.exit(f"{os.path.relpath(PICTURE, ledger.ROOT)} is not what the ledger gives; run tools/bench_picture.py and commit the picture")


if __name__ == "__main__":
    main()
