# SPDX-License-Identifier: Apache-2.0
"""What lm-evaluation-harness and transformers make of the bundled model, for the tests of `sluice eval`.

    python make_eval_golden.py excerpt --data DIR    a dozen items of each published file into tests/data/eval
    python make_eval_golden.py golden                their log-likelihoods and metrics, and perplexities of a text

Prompts, answer strings, tokens and metrics are the harness's own: its task definitions are loaded from the installed
package, only the place of the data is replaced. Numbers are fp32 on the CPU. See README.md beside this file.
"""

import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data" / "eval"
GOLDEN = ROOT / "tests" / "golden" / "eval"
MODEL = ROOT / "models" / "fable-moe-18m"

ITEMS = 12
# task -> (file of the excerpt, published file it is cut from, definition in the harness)
TASKS = {
    "arc-easy": ("arc-easy.json", "llmadapters.ARC-Easy.test.json.zst", "arc/arc_easy.yaml"),
    "arc-challenge": ("arc-challenge.jsonl", "ARC-Challenge-Test.jsonl.zst", "arc/arc_challenge.yaml"),
    "hellaswag": ("hellaswag.jsonl.zst", "hellaswag.val1000.jsonl.zst", "hellaswag/hellaswag.yaml"),
    "openbookqa": ("openbookqa.tsv", "openbookqa.main.test.tsv.zst", "openbookqa/openbookqa.yaml"),
    "boolq": ("boolq.jsonl", "superglue.BoolQ.val.jsonl.zst", "super_glue/boolq/default.yaml"),
}
# Beside each task as it is: what the harness makes of a model whose context is shorter than some of the items.
SHORT_CONTEXT = {"boolq": 96}

PERPLEXITY_BYTES = 3000  # of eval.txt
PERPLEXITIES = [(128, 128), (128, 64), (200, 77), (64, 1), (4096, 512)]  # context, stride


# --- files ---------------------------------------------------------------------------------------------------------


def read_text(path: Path) -> str:
    if path.suffix == ".zst":
        return subprocess.run(["zstd", "-dc", path], capture_output=True, check=True).stdout.decode()
    return path.read_text()


def lines_of(text: str) -> list[str]:
    """With their ends; str.splitlines also splits at characters that may stand inside JSON."""
    return re.findall(r"[^\n]+\n?", text)


def write_text(path: Path, text: str) -> None:
    if path.suffix == ".zst":
        subprocess.run(["zstd", "-19", "-q", "-f", "-o", path], input=text.encode(), check=True)
    else:
        path.write_text(text)


def write_golden(path: Path, golden: dict) -> None:
    """JSON with one key, or one item of a list, a line."""
    lines = []
    for key, value in golden.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            text = "[\n    " + ",\n    ".join(json.dumps(v) for v in value) + "]"
        else:
            text = json.dumps(value)
        lines.append(f"  {json.dumps(key)}: {text}")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


# --- items as the published data sets on the Hugging Face hub have them --------------------------------------------


def arc_easy(text: str) -> list[dict]:
    items = []
    for entry in json.loads(text):
        match = re.fullmatch(r"Please choose the correct answer to the question: (.*)\n\nAnswer1: (.*)\n\n"
                             r"Answer format: (.*)", entry["instruction"], re.S)
        choices = re.split(r" Answer\d+: ", match[2])
        assert len(choices) == match[3].count("/") + 1
        labels = [str(i + 1) for i in range(len(choices))]
        items.append({"question": match[1], "choices": {"text": choices, "label": labels},
                      "answerKey": entry["answer"].removeprefix("answer")})
    return items


def arc_challenge(text: str) -> list[dict]:
    items = []
    for line in lines_of(text):
        entry = json.loads(line)
        choices = entry["question"]["choices"]
        items.append({"question": entry["question"]["stem"], "answerKey": entry["answerKey"],
                      "choices": {"text": [c["text"] for c in choices], "label": [c["label"] for c in choices]}})
    return items


def hellaswag(text: str) -> list[dict]:
    keys = ["activity_label", "ctx_a", "ctx_b", "endings", "label"]
    return [{key: entry[key] for key in keys} for entry in map(json.loads, lines_of(text))]


def openbookqa(text: str) -> list[dict]:
    items = []
    for entry in csv.DictReader(lines_of(text), delimiter="\t", quoting=csv.QUOTE_NONE):
        parts = re.split(r"\(([A-D])\) ", entry["Choices"])[1:]
        items.append({"question_stem": entry["Question Stem"], "answerKey": entry["Answer Key"],
                      "choices": {"text": [t.rstrip(" ") for t in parts[1::2]], "label": parts[0::2]}})
    return items


def boolq(text: str) -> list[dict]:
    return [{"passage": entry["passage"], "question": entry["question"], "label": int(entry["label"] == "true")}
            for entry in map(json.loads, lines_of(text))]


READERS = {"arc-easy": arc_easy, "arc-challenge": arc_challenge, "hellaswag": hellaswag, "openbookqa": openbookqa,
           "boolq": boolq}


# --- excerpts ------------------------------------------------------------------------------------------------------


def choose(count: int, odd: list[bool]) -> list[int]:
    """Half of them odd ones if there are as many, the others spread over the file."""
    chosen = [i for i in range(count) if odd[i]]
    chosen = chosen[:: max(1, len(chosen) // (ITEMS // 2))][: ITEMS // 2]
    step = count // ITEMS
    for i in range(0, count, step):
        if len(chosen) < ITEMS and i not in chosen:
            chosen.append(i)
    return sorted(chosen)


def make_excerpt(task: str, data: Path) -> None:
    file, source, _ = TASKS[task]
    text = read_text(data / source)
    items = READERS[task](text)
    longest = 900  # bytes: BoolQ's passages would make most of the excerpt
    # Odd: characters beyond ASCII, brackets and double spaces (hellaswag cleans them), other than four choices.
    odd = [not json.dumps(i, ensure_ascii=False).isascii() or "[" in " ".join(i.get("endings", [])) or
           "  " in json.dumps(i) or len(i.get("choices", {"text": "four"})["text"]) != 4 for i in items]
    short = [i for i, item in enumerate(items) if len(json.dumps(item)) < longest]
    chosen = [short[i] for i in choose(len(short), [odd[i] for i in short])]
    if task == "arc-easy":
        entries = json.loads(text)
        out = json.dumps([entries[i] for i in chosen], indent=4, ensure_ascii=False)
    elif task == "openbookqa":
        lines = lines_of(text)
        out = lines[0] + "".join(lines[1 + i] for i in chosen)
    else:
        lines = lines_of(text)
        out = "".join(lines[i] for i in chosen)
    write_text(DATA / file, out)
    print(f"{task:14s} {len(out):6d} bytes  items {chosen}  odd {sum(odd[i] for i in chosen)}")


# --- goldens -------------------------------------------------------------------------------------------------------


def load_task(task: str, items: list[dict], scratch: Path):
    """The harness's task, with these items as its test split."""
    import lm_eval.tasks.hellaswag.utils
    import yaml
    from lm_eval.api.task import ConfigurableTask

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!function", lambda loader, node: None)
    folder = Path(lm_eval.__file__).parent / "tasks"
    definition = folder / TASKS[task][2]
    config = yaml.load(definition.read_text(), Loader)
    while "include" in config:
        base = yaml.load((definition.parent / config.pop("include")).read_text(), Loader)
        config = base | config
    if task == "hellaswag":
        config["process_docs"] = lm_eval.tasks.hellaswag.utils.process_docs
    config.pop("tag", None)
    for metric in ("acc_norm", "acc_bytes"):  # also where the task's definition lists only acc
        if metric not in [m["metric"] for m in config["metric_list"]]:
            config["metric_list"].append({"metric": metric, "aggregation": "mean", "higher_is_better": True})
    file = scratch / f"{task}.jsonl"
    file.write_text("".join(json.dumps(item) + "\n" for item in items))
    config |= {"dataset_path": "json", "dataset_name": None, "training_split": None, "validation_split": None,
               "test_split": "test", "dataset_kwargs": {"data_files": {"test": str(file)},
                                                        "cache_dir": str(scratch / "cache")}}
    return ConfigurableTask(config=config)


def make_task_golden(task: str, model: Path, max_length: int | None) -> None:
    from lm_eval import __version__, evaluator
    from lm_eval.models.huggingface import HFLM
    import torch
    import transformers

    lm = HFLM(pretrained=str(model), dtype="float32", device="cpu", batch_size=1, max_length=max_length)
    with tempfile.TemporaryDirectory() as scratch:
        definition = load_task(task, READERS[task](read_text(DATA / TASKS[task][0])), Path(scratch))
        results = evaluator.simple_evaluate(model=lm, tasks=[definition], log_samples=True)
    name = definition.config.task
    items = []
    for sample in sorted(results["samples"][name], key=lambda s: s["doc_id"]):
        pairs = list(sample["arguments"]) if not isinstance(sample["arguments"], dict) else [
            (a["arg_0"], a["arg_1"]) for _, a in sorted(sample["arguments"].items())]
        encoded = [lm._encode_pair(context, continuation) for context, continuation in pairs]
        items.append({
            "context": pairs[0][0],
            "continuations": [continuation for _, continuation in pairs],
            "label": int(sample["target"]),
            "context_tokens": [len(context) for context, _ in encoded],
            "tokens": [len(continuation) for _, continuation in encoded],
            "log_likelihoods": [response[0][0] if isinstance(response[0], (list, tuple)) else response[0]
                                for response in sample["resps"]],
        })
    golden = {"task": task, "items": items, "max_length": max_length}
    for key, value in results["results"][name].items():
        metric = key.removesuffix(",none")
        if metric.startswith("acc"):
            golden[metric] = value
    golden |= {"oracle": f"lm_eval {__version__}", "transformers": transformers.__version__,
               "torch": torch.__version__.split("+")[0]}
    write_golden(GOLDEN / f"{task}{'' if max_length is None else f'-{max_length}'}.json", golden)
    print(task, max_length, {k: v for k, v in golden.items() if k.startswith("acc")})


def make_perplexity_golden(model: Path) -> None:
    """Windows as the guide "Perplexity of fixed-length models" of transformers cuts them."""
    import torch
    import transformers

    text = (model / "eval.txt").read_bytes()[:PERPLEXITY_BYTES].decode()
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    lm = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).eval()
    ids = tokenizer(text, return_tensors="pt", add_special_tokens=False).input_ids
    seq_len = ids.size(1)
    runs = []
    for max_length, stride in PERPLEXITIES:
        windows, prev_end = [], 0
        for begin in range(0, seq_len, stride):
            end = min(begin + max_length, seq_len)
            target_length = end - prev_end
            input_ids = ids[:, begin:end]
            target_ids = input_ids.clone()
            target_ids[:, :-target_length] = -100
            with torch.inference_mode():
                loss = lm(input_ids, labels=target_ids).loss
            scored = int((target_ids[:, 1:] != -100).sum())  # labels are shifted by one inside
            if scored:
                windows.append({"begin": begin, "end": end, "scored": scored, "nll": loss.item() * scored})
            prev_end = end
            if end == seq_len:
                break
        nll, predicted = sum(w["nll"] for w in windows), sum(w["scored"] for w in windows)
        runs.append({"ctx": max_length, "stride": stride, "predicted": predicted, "nll": nll,
                     "perplexity": float(torch.tensor(nll / predicted, dtype=torch.float64).exp()),
                     "windows": windows if len(windows) < 40 else windows[:: len(windows) // 20]})
        print(f"perplexity ctx {max_length} stride {stride}: {runs[-1]['perplexity']:.4f}, {predicted} predicted")
    write_golden(GOLDEN / "perplexity.json", {
        "text_bytes": PERPLEXITY_BYTES, "tokens": seq_len, "runs": runs,
        "transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    excerpt = commands.add_parser("excerpt")
    excerpt.add_argument("--data", type=Path, required=True, help="folder with the published files")
    golden = commands.add_parser("golden")
    golden.add_argument("names", nargs="*", metavar="NAME", help="tasks, or perplexity; all if none is given")
    golden.add_argument("--model", type=Path, default=MODEL)
    arguments = parser.parse_args()
    if arguments.command == "excerpt":
        DATA.mkdir(parents=True, exist_ok=True)
        for task in TASKS:
            make_excerpt(task, arguments.data)
        return 0
    import torch

    torch.set_num_threads(1)  # one order of summation, so that a second run on the machine gives the same files
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or [*TASKS, "perplexity"]:
        if name == "perplexity":
            make_perplexity_golden(arguments.model)
            continue
        make_task_golden(name, arguments.model, None)
        if name in SHORT_CONTEXT:
            make_task_golden(name, arguments.model, SHORT_CONTEXT[name])
    return 0


if __name__ == "__main__":
    sys.exit(main())
