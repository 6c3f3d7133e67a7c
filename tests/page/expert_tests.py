"""The map and the table of experts beside the snapshot."""
import base64
import json
import os
import re
import struct
import time

from harness import PAGE, ask, check, equal, mock, test, until


def colours(theme):
    """The colours of the style sheet, read without a browser: {name: (r, g, b)}."""
    with open(os.path.join(PAGE, "page.css"), encoding="utf-8") as file:
        pairs = re.findall(r"--([\w-]+): light-dark\(#([0-9a-f]{6}), #([0-9a-f]{6})\)", file.read())
    return {name: tuple(bytes.fromhex(dark if theme == "dark" else light)) for name, light, dark in pairs}


SAMPLES = """() => {
  const canvas = document.getElementById('map');
  const context = canvas.getContext('2d');
  const image = context.getImageData(0, 0, canvas.width, canvas.height);
  const pitch = Number(canvas.dataset.pitch);
  const outer = pitch - (pitch >= 12 && !DEVICE ? 2 : 1);
  const at = (x, y) => [...image.data.slice(4 * (y * canvas.width + x), 4 * (y * canvas.width + x) + 3)];
  const cells = [];
  for (let y = 0; y < canvas.height; y += pitch) for (let x = 0; x < canvas.width; x += pitch) {
    const q = (share) => Math.floor(share * (outer - 1));
    cells.push({left: at(x + q(0.25), y + q(0.3)), right: at(x + q(0.75), y + q(0.3)), middle: at(x + q(0.5), y + q(0.3)),
      below: at(x + q(0.25), y + q(0.75)), across: at(x + q(0.25), y + q(0.5)), corner: at(x, y), top: at(x + q(0.5), y), side: at(x, y + q(0.5)),
      gap: at(x + pitch - 1, y + pitch - 1)});
  }
  return cells;
}"""


def share_between(colour, cold, hot):
    """How far `colour` lies from cold to hot, or None if it does not lie between."""
    channel = max(range(3), key=lambda k: abs(hot[k] - cold[k]))
    share = (colour[channel] - cold[channel]) / (hot[channel] - cold[channel])
    near = all(abs(cold[k] + share * (hot[k] - cold[k]) - colour[k]) <= 2 for k in range(3))
    return share if near and -0.02 <= share <= 1.02 else None


def check_cells(page, snapshot, theme):
    palette = colours(theme)
    states = base64.b64decode(snapshot["state"])
    heats = base64.b64decode(snapshot["heat"])
    cells = page.evaluate(SAMPLES.replace("DEVICE", json.dumps("device" in snapshot["tiers"])))
    if page.get_attribute("#map", "data-transposed") == "true":
        cells = [cells[e * snapshot["layers"] + layer] for layer in range(snapshot["layers"]) for e in range(snapshot["experts"])]
    equal(len(cells), len(states), "cells on the canvas")
    filled = {4: ("left", "middle", "right", "below", "across"), 3: ("left", "right", "below"), 2: ("left", "below"), 1: ("right",), 0: (),
              5: ("left", "middle", "right"), 6: ("left", "middle", "right", "below")}
    empty = {4: (), 3: ("middle",), 2: ("middle", "right"), 1: ("left", "middle"), 0: ("left", "middle"), 5: ("below",), 6: ("across",)}
    names = {0: "m", 1: "e", 2: "s", 3: "c", 4: "f", 5: "e", 6: "f"}
    for i, (cell, state, heat) in enumerate(zip(cells, states, heats)):
        host = state & 15
        cold, hot = palette[f"cold-{names[host]}"], palette[f"hot-{names[host]}"]
        for place in filled[host]:
            share = share_between(cell[place], cold, hot)
            check(share is not None, f"cell {i} in state {host}: {place} is {cell[place]}, not between {cold} and {hot}")
            check(abs(share - heat / 255) < 0.12, f"cell {i} in state {host}: heat {heat / 255:.2f}, shown {share:.2f}")
        for place in empty[host]:
            equal(tuple(cell[place]), palette["cell"], f"cell {i} in state {host}: {place}")
        equal(tuple(cell["gap"]), palette["map"], f"gap behind cell {i}")
        if "device" in snapshot["tiers"]:
            frame = {0: (0, 0, 0), 1: (1, 1, 1), 2: (1, 0, 1), 3: (1, 1, 0), 4: (1, 1, 0)}[state >> 4]
            for place, there in zip(("corner", "top", "side"), frame):
                equal(tuple(cell[place]) == palette["frame"], bool(there), f"frame of cell {i} in device state {state >> 4}, {place}")
    return len(cells)


def compare_map(context, page, theme="light"):
    """The map and the snapshot, once nothing flashes."""
    end = time.monotonic() + 8
    while True:
        if context.flags.url:  # an engine at rest may not let its experts cool, as the page does
            page.reload()
            page.wait_for_selector("#map[data-pitch]")
        page.wait_for_timeout(450)
        try:
            return check_cells(page, context.api("v1/experts"), theme)
        except AssertionError:
            if time.monotonic() > end:
                raise


@test
def the_map_equals_the_snapshot(context):
    page = context.page("experts", color_scheme="light")
    page.wait_for_selector("#map[data-pitch]")
    before = context.api("v1/experts")
    compare_map(context, page)
    page.click(".tabs a[data-view=chat]")
    ask(page, "table")
    page.click(".tabs a[data-view=experts]")
    compare_map(context, page)
    after = context.api("v1/experts")
    check(after["sequence"] > before["sequence"] and after["heat"] != before["heat"], "the run used no expert")


@mock("--device", "--quiet")
def the_map_shows_the_device_in_the_dark(context):
    page = context.page("experts", color_scheme="dark")
    page.wait_for_selector("#map[data-pitch]")
    compare_map(context, page, "dark")
    check("frame: full on the device" in page.inner_text(".legend"), "legend")


@mock("--slices", "--quiet")
def the_map_shows_slices(context):
    page = context.page("experts", color_scheme="light")
    page.wait_for_selector("#map[data-pitch]")
    compare_map(context, page)
    check("msb+lsb" in page.inner_text("#layers thead"), "no column of slices")


@mock("--quiet", "--layers", "48", "--experts", "128")
def the_map_is_turned_on_narrow_screens(context):
    page = context.page("experts", viewport={"width": 360, "height": 740}, color_scheme="light")
    page.wait_for_selector("#map[data-transposed=true]")
    compare_map(context, page)
    page.focus("#map")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    check("Layer 2, expert 1" in page.inner_text("#expert"), page.inner_text("#expert"))


@mock("--quiet")
def deltas_after_a_gap(context):
    page = context.page("experts", color_scheme="light")
    page.wait_for_selector("#map[data-pitch]")
    asked = []
    page.on("request", lambda request: request.url.endswith("/v1/experts") and asked.append(request.url))
    context.api("mock/set", [[0, 4], [1, 0], [2, 2]])
    compare_map(context, page)
    equal(len(asked), 0, "snapshots without a gap")
    context.api("mock/gap", {})
    until(lambda: len(asked) >= 1, "the page fetches the snapshot after a gap", page=page)
    compare_map(context, page)
    page.wait_for_timeout(2000)  # the snapshot of a run that has come to rest
    before = len(asked)
    context.api("mock/hidden", [[3, 1], [4, 1]])
    context.api("mock/set", [[5, 3]])
    until(lambda: len(asked) > before, "the page fetches the snapshot after another gap", page=page)
    compare_map(context, page)
    check(len(asked) <= 4, f"{len(asked)} snapshots")


@mock("--quiet")
def the_table_has_the_numbers_of_the_snapshot(context):
    page = context.page("experts")
    page.wait_for_selector("#layers tbody td")
    page.click(".tabs a[data-view=chat]")
    ask(page, "table")
    page.click(".tabs a[data-view=experts]")
    page.wait_for_timeout(2600)
    snapshot = context.api("v1/experts")
    states = base64.b64decode(snapshot["state"])
    uses = struct.unpack(f"<{len(states)}I", base64.b64decode(snapshot["uses"]))
    heads = page.locator("#layers thead th").all_inner_texts()
    equal(heads, ["Layer", "F", "C", "S", "E", "M", "Uses", "Bytes"], "columns")
    rows = page.evaluate("[...document.querySelectorAll('#layers tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent))")
    equal(len(rows), snapshot["layers"], "rows")
    for layer, row in enumerate(rows):
        span = range(layer * snapshot["experts"], (layer + 1) * snapshot["experts"])
        counts = [sum(states[i] & 15 == state for i in span) for state in (4, 3, 2, 1, 0)]
        expected = [snapshot["layer_ids"][layer], *counts, sum(uses[i] for i in span)]
        equal([int(cell.replace(",", "")) for cell in row[:-1]], expected, f"row {layer}")
    i = 2 * snapshot["experts"] + 5
    box = page.locator("#map").bounding_box()
    size = box["width"] / snapshot["experts"]
    page.mouse.move(box["x"] + 5.5 * size, box["y"] + 2.5 * size)
    words = page.inner_text("#expert")
    check(words.startswith(f"Layer {snapshot['layer_ids'][2]}, expert 5 · {'MESCF'[states[i] & 15]},") and f"{uses[i]:,}\u00a0use" in words, words)
    page.mouse.move(0, 0)
    check("Point at a cell" in page.inner_text("#expert"), "the expert is still described")


@mock("--layers", "61", "--experts", "256", "--busy")
def the_map_is_cheap(context):
    page = context.page("experts", viewport={"width": 1440, "height": 900})
    page.wait_for_selector("#map[data-pitch]")
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.wait_for_timeout(1500)
    busy = lambda: {entry["name"]: entry["value"] for entry in session.send("Performance.getMetrics")["metrics"]}["TaskDuration"]
    from_, began = busy(), time.monotonic()
    page.wait_for_timeout(6000)
    share = (busy() - from_) / (time.monotonic() - began)
    print(f"      the page takes {100 * share:.1f} % of a core")
    check(share < 0.10, f"{100 * share:.1f} % of a core")


@mock("--quiet")
def nothing_moves_if_motion_is_unwanted(context):
    page = context.page("experts", reduced_motion="reduce", color_scheme="dark")
    page.wait_for_selector("#map[data-pitch]")
    context.api("mock/gap", {})
    for _ in range(6):
        page.wait_for_timeout(50)
        white = page.evaluate("""() => { const c = document.getElementById('map');
          return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter((v, i, a) => i % 4 === 0 && v + a[i + 1] + a[i + 2] === 765).length; }""")
        equal(white, 0, "pixels of a flash")
    page.click(".tabs a[data-view=chat]")
    ask(page, "slow", wait=False)
    page.wait_for_selector(".running")
    equal(page.evaluate("document.getAnimations().length"), 0, "animations")
    page.keyboard.press("Escape")
