"""The table of cases, texts that grow, hostile texts."""
import markdown_cases
from harness import SERIALISE, check, equal, test


@test
def markdown_table_of_cases(context):
    page = context.page()
    wrong = page.evaluate("""async ([cases, serialise]) => {
      const {markdown, GrowingMarkdown} = await import('/ui/markdown.js');
      const walk = (0, SERIALISE);
      const wrong = [];
      for (const [text, expected] of cases) {
        const found = walk(markdown(text));
        if (found !== expected) wrong.push(`${JSON.stringify(text)}: expected ${expected}, found ${found}`);
        const place = document.createElement('div');
        const growing = new GrowingMarkdown(place);
        for (let n = 1; n <= text.length; n += 1) {
          growing.set(text.slice(0, n));
          const whole = walk(markdown(text.slice(0, n)));
          const grown = [...place.childNodes].map(walk).join('');
          if (whole !== grown) { wrong.push(`${JSON.stringify(text.slice(0, n))} grown: ${grown}, at once: ${whole}`); break; }
        }
      }
      return wrong;
    }""".replace("SERIALISE", SERIALISE), [markdown_cases.CASES, ""])
    equal(len(markdown_cases.CASES), 64, "cases")
    check(not wrong, f"{len(wrong)} wrong\n    " + "\n    ".join(wrong[:12]))
    equal(page.evaluate("document.querySelectorAll('main img, main script').length"), 0, "images and scripts in the page")


@test
def growing_text_is_the_whole_text(context):
    """Random joins of the cases, cut at random places: seeds are printed with a failure."""
    page = context.page()
    wrong = page.evaluate("""async (texts) => {
      const {markdown, GrowingMarkdown} = await import('/ui/markdown.js');
      const walk = (0, SERIALISE);
      for (let seed = 1; seed <= 150; seed += 1) {
        let x = seed;
        const random = (n) => { x = (x * 48271) % 2147483647; return x % n; };
        let text = '';
        for (let k = 0; k < 6; k += 1) text += texts[random(texts.length)] + '\\n'.repeat(random(3));
        const place = document.createElement('div');
        const growing = new GrowingMarkdown(place);
        for (let n = 0; n < text.length; n += 1 + random(25)) growing.set(text.slice(0, n));
        growing.set(text);
        if ([...place.childNodes].map(walk).join('') !== walk(markdown(text))) return `seed ${seed}: ${JSON.stringify(text)}`;
      }
      return '';
    }""".replace("SERIALISE", SERIALISE), [text for text, _ in markdown_cases.CASES])
    equal(wrong, "", "the text")


@test
def markdown_takes_no_long_time(context):
    """Counted is time of the page's thread: the machine may have other things to do."""
    page = context.page()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def milliseconds():
        return 1000 * {entry["name"]: entry["value"] for entry in session.send("Performance.getMetrics")["metrics"]}["TaskDuration"]

    page.evaluate("async () => { window.markdown = (await import('/ui/markdown.js')).markdown; }")
    slowest, slow = (0, ""), {}
    for name, piece in markdown_cases.HOSTILE.items():
        best = 1e9
        for _ in range(3):
            page.evaluate("([piece, n]) => { window.text = piece.repeat(n).slice(0, 100000); }", [piece, 100000 // len(piece) + 1])
            began = milliseconds()
            page.evaluate("() => { markdown(text); }")
            best = min(best, milliseconds() - began)
        slowest = max(slowest, (best, name))
        if best >= 100:
            slow[name] = round(best)
    print(f"      the slowest, {slowest[1]}, takes {slowest[0]:.0f} ms")
    check(slowest[0] > 1, "nothing was measured")
    equal(slow, {}, "milliseconds of texts of 100,000 characters")
