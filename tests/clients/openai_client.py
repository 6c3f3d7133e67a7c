#!/usr/bin/env python3
"""The packages openai and anthropic against the server of src/serve/server/clients_test.cc, whose answers are written down.

    SLUICE_SERVE_CLIENT="VENV/bin/python tests/clients/openai_client.py" build/dev/bin/test_serve --gtest_filter='Clients.*'
"""
import asyncio
import sys

import anthropic
import openai

URL = sys.argv[1]
HI = [{"role": "user", "content": "Hi"}]
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]
client = openai.OpenAI(base_url=URL + "/v1", api_key="secret", max_retries=0)
claude = anthropic.Anthropic(base_url=URL, api_key="secret", max_retries=0)


def raises(kind, call):
    try:
        call()
    except kind as error:
        assert type(error) is kind, type(error)
        return error
    raise AssertionError(f"{kind} was not raised")


def chat(**more):
    return client.chat.completions.create(model="qwen3", messages=more.pop("messages", HI), **more)


def check_models():
    assert [model.id for model in client.models.list()] == ["qwen3"]
    assert client.models.retrieve("qwen3").owned_by == "sluice"
    raises(openai.NotFoundError, lambda: client.models.retrieve("other"))


def check_chat():
    answer = chat()
    assert answer.choices[0].message.content == "Hello." and answer.usage.total_tokens == 50
    assert answer.choices[0].message.reasoning_content == "Short."
    chunks = list(chat(stream=True, stream_options={"include_usage": True}))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "Hello."
    assert chunks[-1].usage.prompt_tokens_details.cached_tokens == 32
    with client.chat.completions.stream(model="qwen3", messages=HI, n=3) as stream:
        for _ in stream:
            pass
        assert [c.message.content for c in stream.get_final_completion().choices] == ["Hello."] * 3
    scored = chat(logprobs=True, top_logprobs=2).choices[0].logprobs.content
    assert len(scored) == 2 and scored[0].logprob == -0.25 and scored[0].top_logprobs[1].logprob == -2


def check_tools():
    call = chat(tools=TOOLS).choices[0].message.tool_calls[0]
    assert (call.function.name, call.function.arguments) == ("get_weather", '{"city": "Paris"}')
    with client.chat.completions.stream(model="qwen3", messages=HI, tools=TOOLS) as stream:
        for _ in stream:
            pass
        choice = stream.get_final_completion().choices[0]
    assert choice.finish_reason == "tool_calls" and choice.message.tool_calls[0].function.arguments == '{"city": "Paris"}'


def check_completions():
    answer = client.completions.create(model="qwen3", prompt=["a", "b"], n=2)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3] and answer.choices[0].text == "Hello."
    assert "".join(c.choices[0].text for c in client.completions.create(model="qwen3", prompt="a", stream=True)) == "Hello."


def check_errors():
    error = raises(openai.BadRequestError, lambda: chat(temperature=3))
    assert error.param == "temperature" and error.code == "invalid_value"
    error = raises(openai.BadRequestError, lambda: chat(max_tokens=5000))
    assert error.code == "context_length_exceeded"
    raises(openai.AuthenticationError, lambda: openai.OpenAI(base_url=URL + "/v1", api_key="no").models.list())
    error = raises(openai.APIError, lambda: list(chat(messages=[{"role": "user", "content": "please fail"}], stream=True)))
    assert error.message == "experts.bin at byte 4096: checksum", error.message
    raises(openai.InternalServerError, lambda: chat(messages=[{"role": "user", "content": "please fail"}]))


def check_async():
    async def many():
        async with openai.AsyncOpenAI(base_url=URL + "/v1", api_key="secret") as other:
            return await asyncio.gather(*(other.chat.completions.create(model="qwen3", messages=HI) for _ in range(32)))
    assert all(answer.choices[0].message.content == "Hello." for answer in asyncio.run(many()))


def check_anthropic():
    answer = claude.messages.create(model="qwen3", max_tokens=9, messages=HI)
    assert [block.type for block in answer.content] == ["thinking", "text"] and answer.stop_reason == "end_turn"
    with claude.messages.stream(model="qwen3", max_tokens=9, messages=HI) as stream:
        assert "".join(stream.text_stream) == "Hello."
        final = stream.get_final_message()
    assert final.content[0].thinking == "Short." and final.usage.output_tokens == 9 and final.usage.cache_read_input_tokens == 32
    tools = [{"name": "get_weather", "input_schema": {"type": "object"}}]
    with claude.messages.stream(model="qwen3", max_tokens=9, messages=HI, tools=tools) as stream:
        final = stream.get_final_message()
    assert final.content[-1].input == {"city": "Paris"} and final.stop_reason == "tool_use"
    assert claude.messages.count_tokens(model="qwen3", messages=HI).input_tokens > 0
    assert [model.id for model in claude.models.list()] == ["qwen3"]
    raises(anthropic.BadRequestError, lambda: claude.messages.create(model="qwen3", max_tokens=5000, messages=HI))
    fail = [{"role": "user", "content": "please fail"}]
    raises(anthropic.InternalServerError, lambda: claude.messages.create(model="qwen3", max_tokens=9, messages=fail))


CHECKS = [check_models, check_chat, check_tools, check_completions, check_errors, check_async, check_anthropic]
for check in CHECKS:
    check()
    print(check.__name__, "ok")
print(f"openai {openai.__version__}, anthropic {anthropic.__version__}: {len(CHECKS)} checks")
