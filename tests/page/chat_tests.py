"""The page loads and holds to its policy; conversations, settings, tool calls, base models."""
import json
import os
import re
import tempfile

from harness import PAGE, SERIALISE, ask, check, equal, last_answer, mock, stored, test, until, wait_for


@test
def loads_without_an_error(context):
    page = context.page()
    for view in ("experts", "run", "chat"):
        page.click(f".tabs a[data-view={view}]")
        page.wait_for_selector(f"#view-{view}:not([hidden])")
    page.wait_for_timeout(500)


@test
def has_a_policy_that_holds(context):
    context.expected = re.compile("Content Security Policy|TrustedHTML|Refused|violates|requires 'Trusted")
    page = context.page()
    found = page.evaluate("""() => {
      const script = document.createElement('script');
      let thrown = '';
      try { script.textContent = 'window.ran = true'; document.body.append(script); } catch (error) { thrown = error.name; }
      try { document.createElement('div').innerHTML = '<p>'; } catch (error) { thrown += error.name; }
      return [window.ran ?? false, thrown];
    }""")
    equal(found[0], False, "a script in the page ran")
    check("TypeError" in found[1], "innerHTML of a string was taken:", found[1])
    until(lambda: page.evaluate("violations.length") > 0, "the break of the policy is reported")
    page.evaluate("violations.length = 0")


@mock()
def is_small(context):
    names = [name for name in os.listdir(PAGE) if not name.endswith((".h", ".cc"))]
    size = sum(os.path.getsize(os.path.join(PAGE, name)) for name in names)
    check(size < 200 * 1000, f"{size} bytes")
    for name in names:
        check(re.fullmatch(r"[a-z_]+\.(html|js|css|svg)", name), name)
        with open(os.path.join(PAGE, name), encoding="utf-8") as file:
            text = file.read()
        check("innerHTML" not in text and "eval(" not in text and not re.search(r"https?://(?!www\.w3\.org)[a-z]", text), name)



@test
def a_chat_streams_and_equals_the_api(context):
    page = context.page()
    page.click("button[aria-label=Settings]")
    for name, value in (("temperature", "0"), ("seed", "7"), ("max_tokens", "48")):
        page.fill(f"#set-{name}", value)
    page.click("dialog button.primary")
    page.evaluate("""() => {
      window.lengths = new Set();
      new MutationObserver(() => lengths.add(document.querySelector('.message.assistant .body')?.textContent.length ?? 0))
        .observe(document.querySelector('.log'), {subtree: true, childList: true, characterData: true});
    }""")
    ask(page, "Tell me of the old king")
    answer = last_answer(page)
    model = context.api("v1/models")["data"][0]["id"]
    whole = context.api("v1/chat/completions", {"model": model, "messages": [{"role": "user", "content": "Tell me of the old king"}],
                                                "temperature": 0, "seed": 7, "max_tokens": 48})
    equal(answer["content"], whole["choices"][0]["message"]["content"] or "", "text of the stream")
    check(page.evaluate("lengths.size") >= 3, "the text did not come bit by bit")
    check(re.search(r"tok/s", page.inner_text(".statistics")), "no statistics")
    check("Context: " in page.inner_text(".context"), "no context")
    shown = page.evaluate(f"""async () => {{
      const {{markdown}} = await import('/ui/markdown.js');
      return ({SERIALISE})(markdown({json.dumps(answer["content"])})) === ({SERIALISE})(document.querySelector('.body'))
        .replace(/^<div>|<.div>$/g, ''); }}""")
    check(shown, "the nodes of the stream are not those of the whole text")


@test
def stop_ends_the_request(context):
    page = context.page()
    for by in ("key", "button"):
        ask(page, "slow: tell a long story", wait=False)
        wait_for(page, "document.querySelector('.message.assistant:last-child .body')?.textContent.length > 5")
        check([slot for slot in context.api("slots") if slot["is_processing"]], "no slot is busy")
        page.keyboard.press("Escape") if by == "key" else page.click(".act.stop")
        until(lambda: not [slot for slot in context.api("slots") if slot["is_processing"]], f"no slot is busy after a stop by {by}", 1.0)
        page.wait_for_selector(".act:not(.stop)")
        check("stopped" in page.inner_text(".message.assistant:last-child .statistics"), "the answer does not say that it was stopped")
        check(last_answer(page)["content"] != "", "what came was not kept")


@test
def reload_keeps_conversations(context):
    page = context.page()
    ask(page, "What is a weir?")
    ask(page, "And a mill?")
    page.click("text=New conversation")
    ask(page, "A third question")
    before = page.locator(".conversations li").count()
    page.reload()
    page.wait_for_selector(".message.assistant")
    equal(page.locator(".conversations li").count(), before, "conversations after reload")
    equal(page.locator(".message.user .text").all_inner_texts(), ["A third question"], "the open conversation")
    page.click(".conversations li:not(.current) .open")
    equal(page.locator(".message.user .text").all_inner_texts(), ["What is a weir?", "And a mill?"], "the other one")


@test
def branches_and_regenerate(context):
    page = context.page()
    ask(page, "First version")
    page.click(".message.user button:has-text('Edit')")
    page.fill(".edit", "Second version")
    page.press(".edit", "Enter")
    wait_for(page, "document.querySelector('.message.user .text')?.textContent === 'Second version'")
    page.wait_for_selector(".message.assistant .statistics:not([hidden])")
    equal(page.inner_text(".message.user .branches span"), "2/2", "branches")
    page.click(".message.user button[aria-label='Earlier version']")
    equal(page.inner_text(".message.user .text"), "First version", "the earlier branch")
    page.click("button:has-text('Regenerate')")
    page.wait_for_selector(".message.assistant .branches")
    wait_for(page, "document.querySelector('.message.assistant').getAttribute('aria-busy') === 'false'")
    equal(page.inner_text(".message.assistant .branches span"), "2/2", "branches of the answer")
    equal(len(stored(page)[0]["messages"]), 5, "messages of all branches")
    page.reload()
    page.wait_for_selector(".message.user")
    equal(page.inner_text(".message.user .text"), "First version", "the branch after reload")


@test
def export_and_import(context):
    page = context.page()
    ask(page, "Remember the heron")
    with page.expect_download() as download:
        page.click("text=Export")
    path = os.path.join(tempfile.mkdtemp(), "export.json")
    download.value.save_as(path)
    with open(path, encoding="utf-8") as file:
        kept = json.load(file)
    equal(kept["conversations"], stored(page), "the file")
    other = context.page()
    equal(other.locator(".conversations .open").count(), 0, "conversations of a fresh profile")
    other.set_input_files("input[type=file]", path)
    other.wait_for_selector(".conversations .open")
    equal(stored(other), kept["conversations"], "conversations after import")
    other.set_input_files("input[type=file]", {"name": "x.json", "mimeType": "application/json", "buffer": b'{"format":"other"}'})
    other.wait_for_selector("#toasts:has-text('not an export')")
    equal(len(stored(other)), 1, "conversations after a refused file")


@test
def garbled_entries_do_no_harm(context):
    page = context.page()
    ask(page, "A good one")
    page.evaluate("""() => {
      const put = (id, text) => localStorage.setItem(`sluice.conversation.${id}`, text);
      put('x1', '{"id":"x1","title":"bad \\\\q","created":1,"updated":2,"messages":[]}');
      put('x2', 'no JSON');
      put('x3', '{"id":"x3","title":"no messages","created":1,"updated":3,"messages":7}');
      localStorage.setItem('sluice.settings', '{"temperature":"hot"');
      localStorage.setItem('sluice.theme', 'pink');
      localStorage.setItem('sluice.open', 'x2');
    }""")
    page.reload()
    page.wait_for_selector("#question")
    equal(page.locator(".conversations .open").all_inner_texts(), ["A good one", "no messages"], "the list")
    page.click(".conversations .open:has-text('no messages')")
    page.wait_for_selector("#toasts:has-text('cannot be read')")
    page.click(".conversations .open:has-text('A good one')")
    equal(page.inner_text(".message.user .text"), "A good one", "the good one")
    page.click("button[aria-label='Delete “no messages”']", force=True)
    equal(page.locator(".conversations .open").count(), 1, "conversations")


@test
def delete_and_undo(context):
    page = context.page()
    ask(page, "To be deleted")
    page.hover(".conversations li")
    page.click(".conversations li button[aria-label^=Delete]")
    page.wait_for_selector(".conversations li.none")
    page.click("#toasts button")
    page.wait_for_selector(".conversations .open")
    equal(page.inner_text(".message.user .text"), "To be deleted", "the conversation that came back")


@test
def keys_of_the_composer(context):
    page = context.page()
    page.focus("#question")
    page.keyboard.type("one")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("two")
    equal(page.input_value("#question"), "one\ntwo", "text after Shift+Enter")
    page.keyboard.press("Enter")
    page.wait_for_selector(".message.user")
    equal(page.inner_text(".message.user .text"), "one\ntwo", "the question")
    equal(page.input_value("#question"), "", "the box after sending")
    page.keyboard.press("Escape")


@mock()
def settings_reach_the_server(context):
    page = context.page()
    page.click("button[aria-label=Settings]")
    for name, value in (("temperature", "0.3"), ("top_p", "0.9"), ("top_k", "40"), ("seed", "11"), ("max_tokens", "9"), ("system", "Be brief.")):
        page.fill(f"#set-{name}", value)
    page.select_option("#set-thinking", "off")
    page.click("dialog button.primary")
    page.reload()
    ask(page, "table, please")
    sent = context.api("mock/log")[-1]
    expected = {"temperature": 0.3, "top_p": 0.9, "top_k": 40, "seed": 11, "max_tokens": 9, "messages": 2, "stream": True,
                "chat_template_kwargs": {"enable_thinking": False}, "stream_options": {"include_usage": True}, "return_progress": True,
                "model": "fable-moe-18m"}
    equal(sent, expected, "the request")
    check("most tokens reached" in page.inner_text(".statistics"), "the answer does not say that it was cut")


@mock()
def reasoning_is_folded_and_dimmed(context):
    page = context.page()
    ask(page, "think about it")
    equal(page.evaluate("document.querySelector('.reasoning').open"), False, "the reasoning is open")
    check("Reasoning, 18 words" in page.inner_text(".reasoning summary"), page.inner_text(".reasoning summary"))
    colours = page.evaluate("['.reasoning', '.body'].map((s) => getComputedStyle(document.querySelector(s)).color)")
    check(colours[0] != colours[1], "the reasoning is not dimmed")
    page.click(".reasoning summary")
    check("miller" in page.inner_text(".reasoning-text"), "no reasoning")


@mock()
def tool_calls_are_cards(context):
    page = context.page()
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]
    page.click("button[aria-label=Settings]")
    page.click("dialog summary")
    page.fill("#set-tools", json.dumps(tools))
    page.click("dialog button.primary")
    ask(page, "use the tool")
    equal(page.inner_text(".card .card-name"), "get_weather", "name of the card")
    equal(json.loads(page.inner_text(".card code")), {"city": "Paris", "days": 3}, "arguments")
    page.fill(".card textarea", "sunny")
    page.click(".card button")
    page.wait_for_selector(".message.tool")
    page.wait_for_selector(".body:has-text('The tool says: sunny')")
    equal(page.inner_text(".message.tool pre"), "sunny", "the result")


@mock()
def failures_are_told(context):
    context.expected = re.compile("400|INCOMPLETE|Failed to load")
    page = context.page()
    for question, words in (("fail", "cannot read at byte 1048576"), ("break", "ended before the answer"), ("refuse me", "maximum context length")):
        ask(page, question)
        check(words in page.inner_text(".message.assistant:last-child .fault"), page.inner_text(".message.assistant:last-child .fault"))
        equal(page.get_attribute(".message.assistant:last-child .fault", "role"), "alert", "role of the error")
        page.click("text=New conversation")


@mock()
def a_finished_answer_is_announced_once(context):
    page = context.page()
    page.evaluate("""() => {
      window.said = [];
      new MutationObserver(() => { const text = document.getElementById('announcer').textContent; if (text) said.push(text); })
        .observe(document.getElementById('announcer'), {childList: true});
    }""")
    ask(page, "table")
    page.wait_for_timeout(300)
    said = page.evaluate("said")
    equal(len(said), 1, f"announcements {said}")
    check(said[0].startswith("The answer is finished: ## How a sluice works"), said[0])
    equal(page.evaluate("document.querySelectorAll('[aria-live=polite], [role=status]').length"), 3, "live regions")


@mock("--base")
def base_models_get_a_completion_box(context):
    page = context.page(ready=False)
    page.fill("#text", "Once upon a time")
    page.keyboard.press("Control+Enter")
    wait_for(page, "document.querySelector('#text').value.length > 60 && !document.querySelector('#text').readOnly")
    check("tok/s" in page.inner_text(".statistics"), "no statistics")
    text = page.input_value("#text")
    equal(text, "Once upon a time" + context.api("v1/completions", {"prompt": "Once upon a time", "max_tokens": 128})["choices"][0]["text"], "text")
    page.click("text=Undo")
    equal(page.input_value("#text"), "Once upon a time", "text after undo")
    equal(context.api("mock/log")[-2]["prompt"], "Once upon a time", "the prompt")
    page.reload()
    page.wait_for_selector("#text")
    equal(page.input_value("#text"), "Once upon a time", "text after reload")
