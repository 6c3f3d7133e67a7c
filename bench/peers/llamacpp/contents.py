"""What a model is made of: a packed store as `sluice inspect` says it, a GGUF file from its keys and tensors, in the same words."""
import json
import math
import subprocess

CLASSES = ("attention", "router", "norms", "head", "embedding", "shared", "dense_mlp", "experts")


def json_of(command):
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def class_of(name):
    part = name.removesuffix(".weight").removesuffix(".bias").rsplit(".", 1)[-1]
    if part in ("token_embd", "output"):
        return {"token_embd": "embedding", "output": "head"}[part]
    if part.endswith("norm"):
        return "norms"
    if part.endswith("_exps"):
        return "experts"
    if part.endswith("_shexp"):
        return "shared"
    if part.startswith(("ffn_gate_inp", "exp_probs")):
        return "router"
    return "attention" if part.startswith("attn") else "dense_mlp"


def of_gguf(file):
    """file: what `sluice inspect --tensors --json` says of a GGUF file."""
    classes = {name: {"bytes": 0, "parameters": 0} for name in CLASSES}
    for tensor in file["tensors"]:
        it = classes[class_of(tensor["name"])]
        it["bytes"] += tensor["bytes"]
        it["parameters"] += math.prod(tensor["shape"])
    architecture = file["keys"]["general.architecture"]
    experts, top_k = (file["keys"][f"{architecture}.{key}"] for key in ("expert_count", "expert_used_count"))
    every_token = sum(it["parameters"] for name, it in classes.items() if name != "experts")
    return {"vocab": next(t["shape"][0] for t in file["tensors"] if t["name"] == "token_embd.weight"),
            "sparse_layers": sum(t["name"].endswith("ffn_down_exps.weight") for t in file["tensors"]),
            "experts_per_layer": experts, "top_k": top_k, "experts": {"bytes": classes["experts"]["bytes"]}, "classes": classes,
            "parameters": {"active": every_token + classes["experts"]["parameters"] * top_k // experts}}


def contents(sluice, model):
    said = json_of([sluice, "inspect", model, "--json", "-q"])
    return of_gguf(json_of([sluice, "inspect", model, "--tensors", "--json", "-q"])) if said.get("format") == "gguf" else said


def kept_always(model):
    """Bytes of all weights but the experts."""
    return sum(model["classes"][name]["bytes"] for name in CLASSES if name != "experts")
