"""Speeds, accounts, requests."""
import re

from harness import ask, check, equal, mock, test, until, wait_for


@test
def budget_bars_sum_to_what_is_used(context):
    page = context.page("run")
    page.wait_for_selector(".budget .part")
    found = page.evaluate("""() => [...document.querySelectorAll('.budget')].map((budget) => {
      const bar = budget.querySelector('.stack').getBoundingClientRect();
      const parts = [...budget.querySelectorAll('.stack .part:not([hidden])')];
      return {tier: budget.dataset.tier, bytes: parts.reduce((sum, part) => sum + Number(part.dataset.bytes), 0),
        share: parts.reduce((sum, part) => sum + part.getBoundingClientRect().width, 0) / bar.width, text: budget.textContent,
        names: parts.map((part) => part.dataset.name)};
    })""")
    memory = context.api("v1/plan")["memory"]
    equal([entry["tier"] for entry in found], list(memory), "tiers")
    for entry in found:
        tier = memory[entry["tier"]]
        equal(entry["bytes"], tier["used"], "bytes of the parts")
        equal(sum(account["now"] for account in tier["by_name"].values()), tier["used"], "bytes of the accounts")
        check(abs(entry["share"] - tier["used"] / tier["budget"]) < 0.01, f"the bar is filled to {entry['share']}, not {tier['used'] / tier['budget']}")
        for name in tier["by_name"]:
            check(name in entry["text"], f"account {name} is not named")


@mock("--device")
def the_run_is_shown(context):
    page = context.page("run", viewport={"width": 1440, "height": 1200})
    other = context.page(profile=page.context)
    ask(other, "slow", wait=False)
    page.wait_for_selector(".lanes [data-state=decode]", timeout=5000)
    wait_for(page, "Number(document.querySelector('.tile b').textContent) > 1")
    check(re.search(r"\d+ in.*\d+ out", page.inner_text(".lanes")), page.inner_text(".lanes"))
    texts = page.inner_text("#view-run")
    for words in ("disk wait", "attention", "Sharing", "Read ahead", "in vain", "of the measured 2.40", "control group ends at", "Memory of the device",
                  "Routing is exact", "8,192\u00a0tokens", "4\u00a0requests run side by side"):
        check(words in texts, f"{words!r} is not shown in {texts!r}")
    width = page.evaluate("""[...document.querySelectorAll('.halves .stack .part')].reduce((sum, part) => sum + part.getBoundingClientRect().width, 0)
        / document.querySelector('.halves .stack').getBoundingClientRect().width""")
    check(abs(width - 1) < 0.02, f"the parts of a step fill {width}")
    other.keyboard.press("Escape")
    page.wait_for_selector("text=No request at the moment")


@mock("--quiet")
def an_engine_at_rest_has_no_speed(context):
    page = context.page("run")
    page.wait_for_selector(".budget .part")
    context.api("mock/frozen", {})
    seen = set()

    def rests():
        seen.add(page.inner_text(".tile b"))
        return "7.5" in seen and page.inner_text(".tile b") == "0"

    until(rests, "the speed is 0 again", page=page)
    keys = page.inner_text(".keys")
    check("everything else" in keys and "attention" not in keys and "sampling" not in keys, keys)
