"""Keys; servers that load, go and come back; pages that are hidden or may keep nothing."""
import re

from expert_tests import compare_map
from harness import ask, check, equal, mock, until, wait_for


@mock("--key", "right")
def the_key_is_asked_for(context):
    context.expected = re.compile("401|Failed to load")
    page = context.page(ready=False)
    page.wait_for_selector("dialog")
    equal(page.locator("dialog").count(), 1, "dialogs")
    page.fill("#key", "wrong")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog:has-text('not accepted')")
    page.fill("#key", "right")
    page.keyboard.press("Enter")
    page.wait_for_selector("#state[data-state=open]")
    ask(page, "table")
    equal(page.evaluate("sessionStorage.getItem('sluice.key')"), "right", "the key that is kept")
    check("right" not in page.evaluate("JSON.stringify(localStorage)"), "the key lies in localStorage")
    page.reload()
    page.wait_for_selector("#state[data-state=open]")
    other = context.page(ready=False)
    other.wait_for_selector("dialog")
    other.keyboard.press("Escape")
    other.wait_for_selector("#state[data-state=locked]")
    other.click("#key-button")
    other.fill("#key", "right")
    other.click("dialog button.primary")
    other.wait_for_selector("#state[data-state=open]")


@mock()
def the_server_goes_and_comes_back(context):
    context.expected = re.compile("ERR_|Failed to load")
    page = context.page("experts")
    page.wait_for_selector("#map[data-pitch]")
    context.mock.stop()
    page.wait_for_selector("#state[data-state=gone]", timeout=5000)
    page.click(".tabs a[data-view=chat]")
    ask(page, "are you there?")
    check("does not answer" in page.inner_text(".fault"), page.inner_text(".fault"))
    context.mock.start()
    page.wait_for_selector("#state[data-state=open]", timeout=8000)
    page.click("text=Regenerate")
    page.wait_for_selector(".statistics:not([hidden])")
    page.click(".tabs a[data-view=experts]")
    compare_map(context, page, "light")


@mock("--loading", "4")
def loading_is_shown(context):
    context.expected = re.compile("503|Failed to load")
    page = context.page(ready=False)
    page.wait_for_selector("#state[data-state=loading]")
    wait_for(page, "/Loading the model, \\d+.%/.test(document.querySelector('h1').textContent)")
    page.wait_for_selector("#question")
    ask(page, "table")


@mock()
def a_page_without_storage_works(context):
    profile = context.profile()
    profile.add_init_script("for (const name of ['localStorage', 'sessionStorage']) Object.defineProperty(window, name, {get() { throw new DOMException('no', 'SecurityError'); }});")
    page = context.page(profile=profile)
    page.fill("#question", "table")
    page.press("#question", "Enter")
    page.wait_for_selector(".statistics:not([hidden])")
    equal(page.locator(".conversations .open").count(), 1, "conversations")


@mock()
def a_hidden_page_asks_for_nothing(context):
    page = context.page("run")
    equal(context.api("mock/subscribers"), 1, "subscribers")
    hide = "(hidden) => { Object.defineProperty(document, 'hidden', {value: hidden, configurable: true}); document.dispatchEvent(new Event('visibilitychange')); }"
    page.evaluate(hide, True)
    until(lambda: context.api("mock/subscribers") == 0, "the page leaves /events", 4)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(2500)
    equal(asked, [], "requests of a hidden page")
    page.evaluate(hide, False)
    until(lambda: context.api("mock/subscribers") == 1, "the page comes back", 4)
