#include "tokenizer/chat/calls/family.h"

#include <algorithm>

#include "base/setting.h"
#include "base/unknown_name.h"

namespace sluice::tokenizer {
namespace {

// The first is what the system message tells of calls where a template shows no tools (chat_messages.cc).
constexpr CallFamily kFamilies[] = {
    {.name = "hermes",
     .literals = {},
     .body = CallBody::kObject,
     .section_begin = "<tool_call>",
     .section_end = "</tool_call>"},
    {.name = "harmony", .literals = {"<|channel|>"}, .body = CallBody::kChannels},
    {.name = "deepseek-v3.2",
     .literals = {"｜DSML｜"},
     .body = CallBody::kParameters,
     .section_begin = "<｜DSML｜function_calls>",
     .call_begin = "<｜DSML｜invoke name=\"",
     .name_end = "\">",
     .key_begin = "<｜DSML｜parameter name=\"",
     .key_end = "\"",
     .value_begin = ">",
     .value_end = "</｜DSML｜parameter>",
     .call_end = "</｜DSML｜invoke>",
     .section_end = "</｜DSML｜function_calls>"},
    {.name = "deepseek-v3",
     .literals = {"<｜tool▁calls▁begin｜>", "```json"},
     .body = CallBody::kArguments,
     .section_begin = "<｜tool▁calls▁begin｜>",
     .call_begin = "<｜tool▁call▁begin｜>",
     .name_begin = "function<｜tool▁sep｜>",
     .name_end = "\n",
     .json_begin = "```json",
     .json_end = "```",
     .call_end = "<｜tool▁call▁end｜>",
     .section_end = "<｜tool▁calls▁end｜>"},
    {.name = "deepseek-v3.1",
     .literals = {"<｜tool▁calls▁begin｜>"},
     .body = CallBody::kArguments,
     .section_begin = "<｜tool▁calls▁begin｜>",
     .call_begin = "<｜tool▁call▁begin｜>",
     .name_end = "<｜tool▁sep｜>",
     .call_end = "<｜tool▁call▁end｜>",
     .section_end = "<｜tool▁calls▁end｜>"},
    {.name = "kimi-k2",
     .literals = {"<|tool_calls_section_begin|>"},
     .body = CallBody::kArguments,
     .ids = CallIds::kCounted,
     .section_begin = "<|tool_calls_section_begin|>",
     .call_begin = "<|tool_call_begin|>",
     .name_end = "<|tool_call_argument_begin|>",
     .call_end = "<|tool_call_end|>",
     .section_end = "<|tool_calls_section_end|>"},
    {.name = "minimax",
     .literals = {"<minimax:tool_call>"},
     .body = CallBody::kParameters,
     .section_begin = "<minimax:tool_call>",
     .call_begin = "<invoke name=\"",
     .name_end = "\">",
     .key_begin = "<parameter name=\"",
     .key_end = "\">",
     .value_end = "</parameter>",
     .call_end = "</invoke>",
     .section_end = "</minimax:tool_call>"},
    {.name = "mistral-v11",
     .literals = {"[TOOL_CALLS]", "[ARGS]"},
     .body = CallBody::kArguments,
     .ids = CallIds::kNine,
     .call_begin = "[TOOL_CALLS]",
     .id_begin = "[CALL_ID]",
     .name_end = "[ARGS]"},
    {.name = "mistral-v3",
     .literals = {"[TOOL_CALLS]"},
     .body = CallBody::kObject,
     .ids = CallIds::kNine,
     .section_begin = "[TOOL_CALLS]",
     .list_begin = "[",
     .separator = ",",
     .list_end = "]"},
    {.name = "glm",
     .literals = {"<arg_key>"},
     .body = CallBody::kParameters,
     .call_begin = "<tool_call>",
     .key_begin = "<arg_key>",
     .key_end = "</arg_key>",
     .value_begin = "<arg_value>",
     .value_end = "</arg_value>",
     .call_end = "</tool_call>"},
    {.name = "qwen-xml",
     .literals = {"<tool_call>", "<function="},
     .body = CallBody::kParameters,
     .section_begin = "<tool_call>",
     .call_begin = "<function=",
     .name_end = ">",
     .key_begin = "<parameter=",
     .key_end = ">",
     .value_end = "</parameter>",
     .lines = true,
     .call_end = "</function>",
     .section_end = "</tool_call>"},
};

// A row: what a template mentions, and the marks of such models.
struct ReasoningRow {
  std::string_view mentioned;
  ReasoningMarks marks;
};
constexpr ReasoningRow kReasoning[] = {
    {"<|channel|>", {"<|channel|>analysis<|message|>", "<|end|>"}},
    {"[THINK]", {"[THINK]", "[/THINK]"}},
    {"<think>", {"<think>", "</think>"}},
    {"</think>", {"<think>", "</think>"}},
};

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

std::span<const CallFamily> call_families() { return kFamilies; }

const CallFamily& call_family(std::string_view name) {
  const auto* const row = std::ranges::find(kFamilies, name, &CallFamily::name);
  if (row == std::end(kFamilies))
    throw unknown_name(Setting::kToolFormat, name, names_in(kFamilies), "unknown format of calls");
  return *row;
}

const CallFamily& detected_call_family(std::string_view template_source) {
  const auto* const row = std::find_if(std::begin(kFamilies) + 1, std::end(kFamilies), [&](const auto& one) {
    return std::ranges::all_of(one.literals,
                               [&](std::string_view literal) { return holds(template_source, literal); });
  });
  return row == std::end(kFamilies) ? kFamilies[0] : *row;
}

AnswerFormat answer_format(std::string_view template_source, std::string_view family_name, bool tells_tools) {
  AnswerFormat format;
  format.family = family_name.empty() ? &detected_call_family(template_source) : &call_family(family_name);
  if (!tells_tools && format.family != &kFamilies[0]) format.told = &kFamilies[0];
  for (const ReasoningRow& row : kReasoning) {
    if (!holds(template_source, row.mentioned)) continue;
    format.reasoning = row.marks;
    break;
  }
  return format;
}

}  // namespace sluice::tokenizer
