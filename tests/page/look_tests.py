"""How the page looks, who can use it, and what it costs over time."""
import os
import re

from expert_tests import compare_map
from harness import ask, check, equal, mock, stored

VIEWS = ("chat", "experts", "run")

OVERFLOW = """() => {
  const wide = document.scrollingElement.scrollWidth > innerWidth ? ['the page'] : [];
  const scrolls = (node) => { for (let n = node.parentElement; n; n = n.parentElement) {
    if (/auto|scroll|hidden/.test(getComputedStyle(n).overflowX) && n.getBoundingClientRect().right <= innerWidth + 1) return true; } return false; };
  for (const node of document.querySelectorAll('body *')) {
    if (!node.checkVisibility({visibilityProperty: true}) || node.closest('.unseen, .skip, .side:not(.open)')) continue;
    const box = node.getBoundingClientRect();
    if (box.width > 0 && (box.right > innerWidth + 1 || box.left < -1) && !scrolls(node)) wide.push(`${node.tagName}.${node.className}`);
  }
  for (const node of document.querySelectorAll('.view:not([hidden]), .log, .side nav')) {
    if (node.scrollWidth > node.clientWidth + 1) wide.push(`scrolls sideways: ${node.className}`);
  }
  return wide;
}"""

CONTRAST = """() => {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 1;
  const context = canvas.getContext('2d', {willReadFrequently: true});
  const rgba = (colour) => { context.clearRect(0, 0, 1, 1); context.fillStyle = colour; context.fillRect(0, 0, 1, 1); return [...context.getImageData(0, 0, 1, 1).data]; };
  const over = (top, below) => top.slice(0, 3).map((v, i) => v * top[3] / 255 + below[i] * (1 - top[3] / 255));
  const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const ground = (node) => { const stack = []; for (let n = node; n; n = n.parentElement) stack.unshift(rgba(getComputedStyle(n).backgroundColor));
    return stack.reduce((below, top) => over(top, below), [255, 255, 255]); };
  const weak = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const node = text.parentElement;
    if (text.data.trim() === '' || !node.checkVisibility({visibilityProperty: true, opacityProperty: true}) || node.closest('.unseen, .skip, .mirror, :disabled, option')) continue;
    const style = getComputedStyle(node);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const back = ground(node);
    const found = ratio(over(rgba(style.color), back), back);
    if (found < (large ? 3 : 4.5)) weak.push(`${found.toFixed(2)} “${text.data.trim().slice(0, 30)}”`);
  }
  for (const node of document.querySelectorAll('input, textarea, select')) {
    if (!node.checkVisibility() || node.closest('.unseen')) continue;
    const style = getComputedStyle(node);
    const framed = parseFloat(style.borderTopWidth) > 0 ? node : node.closest('.box, .paper');
    const found = ratio(rgba(getComputedStyle(framed).borderTopColor).slice(0, 3), ground(framed.parentElement));
    if (found < 3) weak.push(`${found.toFixed(2)} border of ${node.id || node.className}`);
  }
  return weak;
}"""

NAMES = """() => {
  const faults = [];
  const ids = [...document.querySelectorAll('[id]')].map((node) => node.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) faults.push(`id ${id} twice`);
  const seen = (node) => node.checkVisibility({visibilityProperty: true}) && !node.closest('.side:not(.open)') || node.closest('dialog');
  for (const node of document.querySelectorAll('a, button, input, textarea, select, summary, [role=img], [role=region], [role=meter], [role=application], [tabindex="0"], section, dialog, nav, aside, canvas')) {
    if (!node.checkVisibility({visibilityProperty: true}) || node.getAttribute('aria-hidden') === 'true') continue;
    const by = (node.getAttribute('aria-labelledby') ?? '').split(' ').filter(Boolean);
    for (const id of by) if (!document.getElementById(id)) faults.push(`${node.tagName} is named by ${id}, which is not there`);
    const name = node.getAttribute('aria-label') || by.map((id) => document.getElementById(id)?.textContent).join(' ') ||
      (node.labels && node.labels[0]?.textContent) || (/^(A|BUTTON|SUMMARY)$/.test(node.tagName) ? node.textContent : '');
    if (!name?.trim()) faults.push(`${node.tagName}.${node.className} has no name`);
  }
  for (const node of document.querySelectorAll('[aria-describedby], [aria-controls]')) {
    for (const id of `${node.getAttribute('aria-describedby') ?? ''} ${node.getAttribute('aria-controls') ?? ''}`.split(' ').filter(Boolean)) {
      if (!document.getElementById(id)) faults.push(`${node.tagName} refers to ${id}, which is not there`);
    }
  }
  for (const node of document.querySelectorAll('a, button, input, select, textarea, summary')) {
    if (!node.checkVisibility({visibilityProperty: true}) || node.closest('.unseen, .skip, p, li, td')) continue;
    const box = node.getBoundingClientRect();
    if (box.width < 24 || box.height < 24) faults.push(`${node.tagName} “${(node.textContent || node.getAttribute('aria-label') || '').trim()}” is ${box.width.toFixed(0)} × ${box.height.toFixed(0)}`);
  }
  for (const image of document.querySelectorAll('img')) if (!image.hasAttribute('alt')) faults.push('an image without alt');
  if (document.documentElement.lang !== 'en') faults.push('no language');
  if (document.querySelectorAll('main').length !== 1) faults.push('not one main');
  if ([...document.querySelectorAll('h1')].filter((node) => node.checkVisibility()).length > 1) faults.push('two h1');
  for (const table of document.querySelectorAll('table')) if (table.checkVisibility() && !table.querySelector('th[scope]')) faults.push('a table without heads');
  return faults;
}"""


def fill_views(context, page):
    """A page as it looks in use."""
    ask(page, "How does a sluice work? Please think about it and make a table of the gates.")
    ask(page, "Thank you. What did the miller's daughter see?")


def each_look(context):
    for scheme in ("light", "dark"):
        for width, height in ((360, 740), (768, 1024), (1440, 900)):
            page = context.page(viewport={"width": width, "height": height}, color_scheme=scheme)
            fill_views(context, page)
            for view in VIEWS:
                page.click(f".tabs a[data-view={view}]")
                page.wait_for_selector(f"#view-{view}:not([hidden])")
                page.wait_for_timeout(900)
                yield page, f"{view}-{width}-{scheme}"
            page.close()


@mock("--device", "--busy", "--layers", "24", "--experts", "64")
def looks_without_overflow_and_with_contrast(context):
    faults = []
    for page, name in each_look(context):
        if context.flags.shots:
            page.screenshot(path=os.path.join(context.flags.shots, f"{name}.png"))
            if name.startswith("run"):
                page.evaluate("document.querySelector('#view-run').scrollTo(0, 100000)")
                page.screenshot(path=os.path.join(context.flags.shots, f"{name}-end.png"))
        for kind, script in (("overflow", OVERFLOW), ("contrast", CONTRAST), ("names", NAMES)):
            faults += [f"{name} {kind}: {fault}" for fault in page.evaluate(script)]
    check(not faults, f"{len(faults)} faults\n    " + "\n    ".join(faults[:20]))


@mock("--key", "right")
def dialogs_and_odd_states_have_names_and_contrast(context):
    context.expected = re.compile("401|Failed to load")
    for scheme in ("light", "dark"):
        for width in (360, 1280):
            page = context.page(viewport={"width": width, "height": 740}, color_scheme=scheme, ready=False)
            faults = []

            def look(name):
                if context.flags.shots:
                    page.wait_for_timeout(250)
                    page.screenshot(path=os.path.join(context.flags.shots, f"{name}-{width}-{scheme}.png"))
                for script in (OVERFLOW, CONTRAST, NAMES):
                    faults.extend(f"{name}-{width}-{scheme}: {fault}" for fault in page.evaluate(script))

            page.wait_for_selector("dialog")
            look("key")
            page.fill("#key", "right")
            page.keyboard.press("Enter")
            page.wait_for_selector("#question")
            look("welcome")
            page.click("button[aria-label=Settings]")
            page.click("dialog summary")
            look("settings")
            page.fill("#set-tools", '[{"type":"function","function":{"name":"get_weather"}}]')
            page.click("dialog button.primary")
            ask(page, "use the tool")
            look("tool")
            page.fill(".card textarea", "sunny")
            page.click(".card button")
            page.wait_for_selector(".body:has-text('sunny')")
            page.wait_for_selector(".act:not(.stop)")
            ask(page, "fail")
            look("failure")
            page.click(".message.user >> nth=0 >> button:has-text('Edit')")
            look("edit")
            page.keyboard.press("Escape")
            if width == 360:
                page.click(".side-toggle")
                page.wait_for_timeout(300)
                look("side")
            check(not faults, f"{len(faults)} faults\n    " + "\n    ".join(faults[:20]))


@mock("--base")
def the_completion_box_has_names_and_contrast(context):
    for width, scheme in ((360, "dark"), (1280, "light")):
        page = context.page(viewport={"width": width, "height": 740}, color_scheme=scheme)
        page.fill("#text", "Once upon a time")
        page.keyboard.press("Control+Enter")
        page.wait_for_selector(".statistics:not([hidden])")
        if context.flags.shots:
            page.screenshot(path=os.path.join(context.flags.shots, f"text-{width}-{scheme}.png"))
        faults = [fault for script in (OVERFLOW, CONTRAST, NAMES) for fault in page.evaluate(script)]
        check(not faults, faults)


@mock("--device")
def zoom_of_200_percent(context):
    page = context.page(viewport={"width": 640, "height": 360}, device_scale_factor=2, color_scheme="light")
    fill_views(context, page)
    for view in VIEWS:
        page.click(f".tabs a[data-view={view}]")
        page.wait_for_timeout(600)
        if context.flags.shots:
            page.screenshot(path=os.path.join(context.flags.shots, f"{view}-zoomed.png"))
        equal(page.evaluate(OVERFLOW), [], f"overflow of {view}")
    page.click(".tabs a[data-view=experts]")
    compare_map(context, page)


@mock("--quiet")
def tab_order(context):
    page = context.page()
    ask(page, "table")
    page.evaluate("document.activeElement.blur()")
    for view, must in (("chat", ["skip", "brand", "Chat", "Experts", "Run", "theme-button", "New conversation", "conversation", "Delete", "Export", "Import", "log",
                                 "Copy the question", "Edit", "table", "Copy the code", "code", "link", "Copy the answer", "Regenerate", "question", "Settings", "Send"]),
                       ("experts", ["skip", "brand", "Chat", "Experts", "Run", "theme-button", "map", "table"]),
                       ("run", ["skip", "brand", "Chat", "Experts", "Run", "theme-button", "table"])):
        page.goto(context.url + "#" + view)
        page.reload()
        page.wait_for_selector("#state[data-state=open]")
        page.wait_for_timeout(600)
        found, invisible = [], []
        for _ in range(40):
            page.keyboard.press("Tab")
            entry = page.evaluate("""() => {
              const node = document.activeElement;
              if (node === document.body) return null;
              const style = getComputedStyle(node);
              const shown = parseFloat(style.outlineWidth) > 0 && style.outlineStyle !== 'none' || node.closest('.box, .paper') && parseFloat(getComputedStyle(node.closest('.box, .paper')).outlineWidth) > 0;
              const box = node.getBoundingClientRect();
              const inside = box.bottom > 0 && box.top < innerHeight && box.width > 0 && getComputedStyle(node).opacity === '1';
              const name = node.matches('.skip') ? 'skip' : node.matches('.brand') ? 'brand' : node.matches('.log') ? 'log' : node.matches('.table') ? 'table'
                : node.matches('.code pre') ? 'code' : node.matches('.body a') ? 'link' : node.matches('.conversations .open') ? 'conversation' : node.id
                || (node.getAttribute('aria-label') ?? node.textContent).trim();
              return [name, Boolean(shown), inside];
            }""")
            if entry is None:
                break
            found.append("Delete" if entry[0].startswith("Delete") else entry[0])
            if not (entry[1] and entry[2]):
                invisible.append(entry)
        equal(found, must, f"order of {view}")
        check(not invisible, f"focus is not seen: {invisible}")


@mock()
def the_theme_is_kept(context):
    page = context.page(color_scheme="light")
    ground = lambda: page.evaluate("getComputedStyle(document.body).backgroundColor")
    light = ground()
    page.click("#theme-button")
    equal(page.get_attribute("#theme-button", "aria-label"), "Theme: light", "theme")
    page.click("#theme-button")
    dark = ground()
    check(dark != light, "dark is light")
    page.reload()
    equal(ground(), dark, "ground after reload")
    page.click("#theme-button")
    equal(ground(), light, "ground as the system has it")


@mock()
def memory_is_steady_over_500_answers(context):
    page = context.page()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def held():
        for _ in range(3):
            session.send("HeapProfiler.collectGarbage")
        metrics = {entry["name"]: entry["value"] for entry in session.send("Performance.getMetrics")["metrics"]}
        return metrics["JSHeapUsedSize"], metrics["Nodes"], metrics["JSEventListeners"]

    marks = []
    for conversation in range(50):
        page.click("text=New conversation")
        for question in range(10):
            page.evaluate("""(n) => new Promise((done) => {
              const area = document.querySelector('#question');
              area.value = `flood ${n}`;
              const act = document.querySelector('.act');
              new MutationObserver((_, observer) => {
                if (act.getAttribute('aria-label') !== 'Send') return;
                observer.disconnect();
                done();
              }).observe(act, {attributes: true});
              act.click();
            })""", question)
        page.hover(".conversations li.current")
        page.click(".conversations li.current button[aria-label^=Delete]")
        if conversation in (9, 49):
            page.click("text=New conversation")
            page.wait_for_timeout(5200)  # a remark with its undo goes
            marks.append(held())
    early, late = marks
    print(f"      after 100 and 500 answers: {early[0] / 1e6:.2f} and {late[0] / 1e6:.2f} MB, {early[1]:.0f} and {late[1]:.0f} nodes, "
          f"{early[2]:.0f} and {late[2]:.0f} listeners")
    equal(len(stored(page)), 0, "conversations that are left")
    check(late[0] < early[0] + 1e6, "the heap grows")
    check(late[1] < early[1] * 1.2 + 200, "the nodes grow")
    check(late[2] < early[2] * 1.2 + 50, "the listeners grow")
