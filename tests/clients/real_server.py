#!/usr/bin/env python3
"""Real clients against the real server with the bundled model: the packages openai, anthropic and lm-eval.

    tests/clients/real_server.py PROGRAM [--only openai,anthropic,lm-eval]

Start it with the Python of a virtual environment that has the packages; of a package that is not there it says so, and goes on.
lm-eval's log-likelihoods are compared with those of `sluice eval`. Ends with 1 if something is wrong, and with 77 if no package was there."""
import argparse
import asyncio
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = os.path.join(ROOT, "models/fable-moe-18m")
HI = [{"role": "user", "content": "Tell me about a fox."}]
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]


class Server:
    def __init__(self, program, *flags):
        words = [program, "serve", MODEL, "--port", "0", "--memory", "64MiB", "--chat-template", "chatml", *flags]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        self.url = None
        for line in self.process.stderr:
            found = re.search(r"(http://127\.0\.0\.1:\d+) serves", line)
            if found:
                self.url = found.group(1)
                break
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        assert self.process.wait(60) == 0, "the server did not end as it should"


def raises(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


def openai_chat(client):
    import openai
    plain = client.chat.completions.create(model="any", messages=HI, max_tokens=20, temperature=0)
    text = plain.choices[0].message.content
    assert text and plain.usage.completion_tokens <= 20
    chunks = list(client.chat.completions.create(model="any", messages=HI, max_tokens=20, temperature=0, stream=True,
                                                 stream_options={"include_usage": True}))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == text
    assert chunks[-1].usage.prompt_tokens == plain.usage.prompt_tokens
    with client.chat.completions.stream(model="any", messages=HI, max_tokens=8, n=3, seed=5) as stream:
        for _ in stream:
            pass
        three = [c.message.content for c in stream.current_completion_snapshot.choices]
    again = client.chat.completions.create(model="any", messages=HI, max_tokens=8, n=3, seed=5)
    assert three == [c.message.content for c in again.choices], "the same seed gives the same texts"
    scored = client.chat.completions.create(model="any", messages=HI, max_tokens=4, temperature=0, logprobs=True, top_logprobs=3)
    for token in scored.choices[0].logprobs.content:
        assert token.logprob == token.top_logprobs[0].logprob and bytes(token.bytes).decode("utf-8", "replace") == token.token
    stop = text[3:6]
    cut = client.chat.completions.create(model="any", messages=HI, max_tokens=20, temperature=0, stop=[stop])
    assert cut.choices[0].message.content == text[:text.index(stop)] and cut.choices[0].finish_reason == "stop"
    client.chat.completions.create(model="any", messages=HI, max_tokens=4, tools=TOOLS)
    raises(openai.BadRequestError, lambda: client.chat.completions.create(model="any", messages=HI, temperature=9))
    error = raises(openai.BadRequestError, lambda: client.chat.completions.create(model="any", messages=[{"role": "user", "content": "a b c " * 4000}]))
    assert error.code == "context_length_exceeded" and "maximum context length" in str(error)


FOX = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 20},
                                        "colours": {"type": "array", "items": {"enum": ["red", "grey"]}, "minItems": 1, "maxItems": 3}},
       "required": ["name", "age", "colours"], "additionalProperties": False}


def is_fox(text):
    fox = json.loads(text)
    assert list(fox) == ["name", "age", "colours"] and isinstance(fox["name"], str) and len(fox["name"]) <= 12, fox
    assert type(fox["age"]) is int and 0 <= fox["age"] <= 20 and 1 <= len(fox["colours"]) <= 3 and set(fox["colours"]) <= {"red", "grey"}, fox


def openai_forms(client):
    import openai
    import pydantic

    class Fox(pydantic.BaseModel):
        name: str = pydantic.Field(max_length=12)
        age: int = pydantic.Field(ge=0, le=20)

    def chat(**more):
        return client.chat.completions.create(model="any", messages=HI, max_tokens=400, temperature=1, **more)

    schema = {"type": "json_schema", "json_schema": {"name": "fox", "strict": True, "schema": FOX}}
    add = [{"type": "function", "function": {"name": "add_fox", "strict": True, "parameters": FOX}}]
    for seed in range(10):
        answer = chat(response_format=schema, seed=seed).choices[0]
        assert answer.finish_reason == "stop"
        is_fox(answer.message.content)
        chunks = list(chat(response_format=schema, seed=seed, stream=True))
        assert "".join(c.choices[0].delta.content or "" for c in chunks) == answer.message.content
        free = chat(response_format={"type": "json_object"}, seed=seed).choices[0]
        assert free.finish_reason == "length" or isinstance(json.loads(free.message.content), dict)
        for choice in ("required", {"type": "function", "function": {"name": "add_fox"}}):
            called = chat(tools=add, tool_choice=choice, parallel_tool_calls=False, seed=seed).choices[0]
            assert called.finish_reason == "tool_calls" and [c.function.name for c in called.message.tool_calls] == ["add_fox"]
            is_fox(called.message.tool_calls[0].function.arguments)
        with client.chat.completions.stream(model="any", messages=HI, max_tokens=400, tools=add, tool_choice="required",
                                            parallel_tool_calls=False, seed=seed) as stream:
            for _ in stream:
                pass
            is_fox(stream.get_final_completion().choices[0].message.tool_calls[0].function.arguments)
        parsed = client.chat.completions.parse(model="any", messages=HI, max_tokens=400, response_format=Fox, seed=seed)
        assert isinstance(parsed.choices[0].message.parsed, Fox)
    error = raises(openai.BadRequestError, lambda: chat(response_format={
        "type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object", "properties": {"a": {"not": {}}}}}}))
    assert error.code == "invalid_json_schema" and error.param == "response_format.json_schema.schema.properties.a.not"


def openai_completions(client):
    ids = [5, 6, 7]
    for prompt in ("Once upon", ["Once upon", "The fox"], ids, [ids, ids]):
        answer = client.completions.create(model="any", prompt=prompt, max_tokens=4, temperature=0)
        assert len(answer.choices) == (len(prompt) if isinstance(prompt, list) and not isinstance(prompt[0], int) else 1)
    echo = client.completions.create(model="any", prompt="Once upon a time", max_tokens=1, temperature=0, echo=True, logprobs=1)
    scores = echo.choices[0].logprobs
    assert scores.token_logprobs[0] is None and all(p <= 0 for p in scores.token_logprobs[1:])
    assert "".join(scores.tokens) == echo.choices[0].text and len(scores.text_offset) == len(scores.tokens)
    whole = client.completions.create(model="any", prompt="Once", max_tokens=12, temperature=0).choices[0].text
    assert "".join(c.choices[0].text for c in client.completions.create(model="any", prompt="Once", max_tokens=12, temperature=0, stream=True)) == whole


def check_openai(program):
    import openai
    with Server(program, "--parallel", "4", "--queue", "4") as server:
        client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)
        assert client.models.list().data[0].id == "fable-moe-18m"
        assert client.models.retrieve("fable-moe-18m").owned_by == "sluice"
        raises(openai.NotFoundError, lambda: client.models.retrieve("other"))
        openai_chat(client)
        openai_forms(client)
        openai_completions(client)
        many = openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="none", max_retries=20)

        async def ask(number):
            answer = await many.completions.create(model="any", prompt=f"Number {number % 4}", max_tokens=6, temperature=0)
            return number % 4, answer.choices[0].text

        async def all_of_them():
            return await asyncio.gather(*(ask(i) for i in range(32)))
        answers = asyncio.run(all_of_them())  # more than the queue takes: the client tries again behind a 429
        assert len(set(answers)) == 4, "one text for each prompt"
    with Server(program, "--api-key", "right") as server:
        raises(openai.AuthenticationError, openai.OpenAI(base_url=server.url + "/v1", api_key="wrong", max_retries=0).models.list)
        assert openai.OpenAI(base_url=server.url + "/v1", api_key="right").models.list().data


def check_anthropic(program):
    import anthropic
    with Server(program) as server:
        client = anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0)
        plain = client.messages.create(model="any", max_tokens=16, messages=HI, extra_body={"temperature": 0})
        text = "".join(block.text for block in plain.content if block.type == "text")
        with client.messages.stream(model="any", max_tokens=16, messages=HI, extra_body={"temperature": 0}) as stream:
            assert "".join(stream.text_stream) == text
            final = stream.get_final_message()
        assert final.stop_reason == plain.stop_reason and final.usage.output_tokens == plain.usage.output_tokens
        counted = client.messages.count_tokens(model="any", messages=HI).input_tokens
        assert counted == plain.usage.input_tokens + (plain.usage.cache_read_input_tokens or 0)
        client.messages.create(model="any", max_tokens=4, messages=HI, system="Be brief.", tools=[{"name": "f", "input_schema": {"type": "object"}}])
        forced = client.messages.create(model="any", max_tokens=400, messages=HI, tools=[{"name": "add_fox", "input_schema": FOX}],
                                        tool_choice={"type": "tool", "name": "add_fox", "disable_parallel_tool_use": True})
        assert forced.stop_reason == "tool_use" and [b.type for b in forced.content] == ["tool_use"]
        is_fox(json.dumps(forced.content[0].input))
        bound = client.messages.create(model="any", max_tokens=400, messages=HI, extra_body={"output_config": {"format": {"type": "json_schema", "schema": FOX}}})
        is_fox(bound.content[0].text)
        raises(anthropic.BadRequestError, lambda: client.messages.create(model="any", max_tokens=0, messages=HI))
        raises(anthropic.NotFoundError, lambda: client.models.retrieve("other"))
        assert client.models.list().data[0].id == "fable-moe-18m"


def check_lm_eval(program):
    """Log-likelihoods of continuations, each the sum that `sluice eval` gives for the same ids."""
    from lm_eval.models.openai_completions import LocalCompletionsAPI
    pairs = [("Once upon a time", " there was a little girl"), ("The fox said", ", \"I am hungry.\""), ("In the sea", " lived a fish")]
    with Server(program, "--parallel", "8") as server:
        for batch, concurrent in ((1, 1), (3, 1), (1, 8)):
            api = LocalCompletionsAPI(base_url=server.url + "/v1/completions", model="any", tokenizer_backend="remote", batch_size=batch,
                                      num_concurrent=concurrent, max_length=1024)
            rows = api.loglikelihood([request("loglikelihood", pair) for pair in pairs])
            rolling = api.loglikelihood_rolling([request("loglikelihood_rolling", ("".join(pairs[0]),))])
            greedy = api.generate_until([request("generate_until", ("Once upon a time", {"until": ["\n\n"], "max_gen_toks": 8, "temperature": 0}))])
            assert greedy[0], "no text"
            for (context, rest), (logprob, is_greedy) in zip(pairs, rows):
                expected, best = of_forward(program, context, rest)
                assert abs(logprob - expected) < 1e-4 and bool(is_greedy) == best, (context, logprob, expected, is_greedy, best)
            assert rolling[0] < 0


def request(kind, arguments):
    from lm_eval.api.instance import Instance
    return Instance(request_type=kind, doc={}, arguments=arguments, idx=0)


def ids_of(program, text):
    out = subprocess.run([program, "tokenize", MODEL, "-p", text, "--json"], stdout=subprocess.PIPE, check=True).stdout
    found = json.loads(out)
    return found["ids"] if isinstance(found, dict) else found


def of_forward(program, context, rest):
    """The log-probability of `rest`, and whether it is the likeliest text, from the logits of `sluice forward`."""
    import numpy
    head, whole = ids_of(program, context), ids_of(program, context + rest)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "logits.npy")
        subprocess.run([program, "forward", MODEL, "--tokens", ",".join(map(str, whole)), "--out", path, "--quiet"], check=True)
        logits = numpy.load(path).astype(numpy.float64)
    total, best = 0.0, True
    for place in range(len(head), len(whole)):
        row = logits[place - 1]
        total += row[whole[place]] - (row.max() + numpy.log(numpy.exp(row - row.max()).sum()))
        best = best and int(row.argmax()) == whole[place]
    return total, best


CHECKS = {"openai": ("openai", check_openai), "anthropic": ("anthropic", check_anthropic), "lm-eval": ("lm_eval", check_lm_eval)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--only", default=",".join(CHECKS))
    options = parser.parse_args()
    ran = 0
    for name in options.only.split(","):
        package, check = CHECKS[name]
        if importlib.util.find_spec(package) is None:
            print(f"SKIPPED {name}: the package {package} is not installed", file=sys.stderr)
            continue
        check(options.program)
        print(f"{name}: fine")
        ran += 1
    return 0 if ran else 77


if __name__ == "__main__":
    sys.exit(main())
