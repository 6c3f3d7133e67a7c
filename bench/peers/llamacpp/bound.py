"""The least time that exact inference of one token can take on this machine, from figures of the same run.

Decoding, of one token:

    bytes that must be read / disk + bytes of attention, router and head / memory      (no read is certain while these run)

or the time in which memory gives all active weights once, where that is longer. Bytes that must be read come from the recorded routing of
the very tokens: misses of a cache of the budget's size, less the dense weights, that keeps experts packed. Two caches: the best of LRU and
LFU, and the optimal one, which knows the future (and so needs little in a short run: what the prompt has read it keeps if it comes again).
Prefill: every expert that the prompt uses, once, over the disk's rate, or the products over the fastest multiply-add loop, whichever is
longer.
"""
import os
import tempfile

from contents import contents, json_of


class Routing:
    """What the model routes for these tokens, recorded once; independent of any budget."""

    def __init__(self, sluice, store, tokens, predict):
        self.sluice = sluice
        self.model = contents(sluice, store)
        self.folder = tempfile.TemporaryDirectory()
        self.trace = os.path.join(self.folder.name, "routing.trace")
        self.tokens = json_of([sluice, "trace", store, "--tokens", tokens, "-n", str(predict), "--temp", "0", "--ignore-eos", "-o",
                               self.trace, "--json", "-q"])["tokens"]
        self.accesses = self.model["sparse_layers"] * self.model["top_k"] * (predict - 1)
        self.expert_bytes = self.model["experts"]["bytes"] / (self.model["sparse_layers"] * self.model["experts_per_layer"])
        self.layer_size = self.model["experts_per_layer"]
        self.predict = predict

    def simulate(self, *arguments):
        return json_of([self.sluice, "simulate", "--trace", self.trace, "--json", *arguments])

    def repeated(self):
        """Share of a token's experts that the token before it used in the same layer."""
        return self.simulate("--cache", "lru", "--capacity", str(self.model["top_k"]), "--scope", "layer")["decode_hit_rate"]

    def experts_of_prompt(self):
        everything = self.simulate("--cache", "lru", "--capacity", str(self.model["sparse_layers"] * self.layer_size), "--scope", "global")
        return everything["misses"] - round((1 - everything["decode_hit_rate"]) * self.accesses)

    def misses_per_token(self, cache, capacity_bytes):
        capacity = int(capacity_bytes // self.expert_bytes)
        if capacity < 1:
            return self.accesses / (self.predict - 1)
        rate = self.simulate("--cache", cache, "--capacity", str(capacity), "--scope", "global")["decode_hit_rate"]
        return self.accesses * (1 - rate) / (self.predict - 1)


def bounds(routing, memory, rates, prompt):
    """memory: bytes or None; rates: {disk, memory, flops} per second. Seconds and what they are made of."""
    classes = routing.model["classes"]
    serial = sum(classes[name]["bytes"] for name in ("attention", "router", "norms", "head"))
    if classes["head"]["bytes"] == 0:  # tied
        serial += classes["embedding"]["bytes"]
    resident = serial + classes["shared"]["bytes"] + classes["dense_mlp"]["bytes"]
    experts = routing.model["experts"]["bytes"]
    active = resident + routing.accesses / (routing.predict - 1) * routing.expert_bytes
    capacity = experts if memory is None else max(0, min(experts, memory - resident))
    result = {"capacity_experts": int(capacity // routing.expert_bytes), "active_bytes": active, "serial_bytes": serial}
    for kind, caches in (("optimal", ["belady_bypass"]), ("online", ["lru", "lfu"])):
        misses = min(routing.misses_per_token(cache, capacity) for cache in caches) if capacity < experts else 0.0
        read = misses * routing.expert_bytes
        # Where bytes are read, too: experts are multiplied while others are read.
        seconds = max(read / rates["disk"] + serial / rates["memory"], active / rates["memory"])
        result[kind] = {"read_bytes": read, "seconds": seconds, "tok_s": 1 / seconds}
    # The head is applied to the last token alone.
    of_token = routing.model["parameters"]["active"] - classes["embedding"]["parameters"] - classes["head"]["parameters"]
    flops = 2.0 * of_token * prompt
    read = routing.experts_of_prompt() * routing.expert_bytes
    result["prefill"] = {"read_bytes": read, "seconds": max(read / rates["disk"], flops / rates["flops"]),
                         "in_memory_seconds": flops / rates["flops"]}
    for kind in ("seconds", "in_memory_seconds"):
        result["prefill"][kind.replace("seconds", "tok_s")] = prompt / result["prefill"][kind]
    return result
