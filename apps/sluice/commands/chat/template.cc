// `sluice template`: shows the prompt that a model's chat template makes of messages, or what it can do.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "base/setting.h"
#include "command.h"
#include "commands/chat/chat_request.h"
#include "commands/chat/open_chat_template.h"
#include "flags/model_argument.h"
#include "setup/open_tokenizer.h"
#include "streams/standard_output.h"
#include "tokenizer/chat/calls/family.h"
#include "tokenizer/chat/chat_template.h"

namespace sluice::app {
namespace {

struct TemplateOptions {
  CommonFlags common;
  std::string path, chat_template, prompt, file;
  std::vector<std::string> variables;  // NAME=JSON
  bool from_prompt = false, from_file = false, no_generation_prompt = false, tokens = false, caps = false;
};

std::string piece_in_quotes(const std::string& piece) {
  return Json(piece).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json caps_json(const tokenizer::ChatCaps& caps) {
  return {{"renders", caps.renders},
          {"system", caps.system},
          {"developer", caps.developer},
          {"tools", caps.tools},
          {"calls", caps.calls},
          {"two_calls", caps.two_calls},
          {"argument_object", caps.argument_object},
          {"parts", caps.parts},
          {"thinking_switch", caps.thinking_switch},
          {"opens_thinking", caps.opens_thinking},
          {"alternates", caps.alternates},
          {"behind_answer", caps.behind_answer}};
}

// What the template tells of the way in which answers are written.
struct Answers {
  std::string family, reasoning;  // reasoning: its first mark; empty: none
};

Answers answers_of(const tokenizer::ChatTemplate& chat) {
  const tokenizer::AnswerFormat format =
      tokenizer::answer_format(chat.source(true), {}, chat.caps(true).tools);
  return {std::string(format.family->name), std::string(format.reasoning.begin)};
}

std::string caps_text(const tokenizer::ChatCaps& caps, const Answers& answers, const std::string& place) {
  std::string lines = fmt::format("chat template      {}\n", place);
  lines += fmt::format("{:<19}{}\n", "calls are written", "as " + answers.family + " does");
  lines += fmt::format("{:<19}{}\n", "reasoning",
                       answers.reasoning.empty() ? "no" : "begins with " + answers.reasoning);
  const auto line = [&](std::string_view what, bool has, std::string_view otherwise = "") {
    lines += fmt::format("{:<19}{}{}\n", what, has ? "yes" : "no", has ? "" : otherwise);
  };
  line("renders a message", caps.renders);
  line("system role", caps.system, ": its text is put before the first user message");
  line("developer role", caps.developer, ": it becomes system");
  line("tools", caps.tools, ": they are described in the system message");
  line("calls of tools", caps.calls, ": they are written as text");
  line("two calls at once", caps.two_calls);
  line("arguments", caps.argument_object, ": given as a string of JSON");
  line("content in parts", caps.parts, ": text parts are joined");
  line("thinking switch", caps.thinking_switch);
  line("opens <think>", caps.opens_thinking);
  lines += fmt::format("{:<19}{}\n", "neighbours",
                       caps.alternates ? "of one role are merged" : "may have one role");
  lines += fmt::format("{:<19}{}\n", "behind an answer", piece_in_quotes(caps.behind_answer));
  return lines;
}

void show_caps(const TemplateOptions& options, const tokenizer::ChatTemplate& chat) {
  const tokenizer::ChatCaps& caps = chat.caps(false);
  const Answers answers = answers_of(chat);
  if (options.common.json) {
    Json json = caps_json(caps);
    json["family"] = answers.family;
    json["reasoning"] = answers.reasoning.empty() ? Json() : Json(answers.reasoning);
    std::cout << Json{{"chat_template", chat.place(false)}, {"caps", json}}.dump() << '\n';
  } else {
    std::cout << output_text(caps_text(caps, answers, chat.place(false)));
  }
}

void show_prompt(const TemplateOptions& options, const tokenizer::ChatTemplate& chat,
                 const tokenizer::ChatRequest& request) {
  const tokenizer::MarkedText prompt = chat.render(request);
  std::vector<tokenizer::TokenId> ids;
  std::unique_ptr<tokenizer::Tokenizer> tokenizer;
  if (options.tokens) {
    tokenizer = open_tokenizer(options.path, options.common);
    ids = tokenizer->encode(prompt);
  }
  if (options.common.json) {
    Json shown{{"prompt", prompt.bytes()}};
    if (options.tokens) shown["ids"] = ids;
    std::cout << shown.dump() << '\n';
    return;
  }
  if (!options.tokens) {
    std::cout << output_text(prompt.bytes());
    return;
  }
  std::string lines;
  for (const tokenizer::TokenId id : ids)
    lines += fmt::format("{:>7}  {}\n", id,
                         piece_in_quotes(tokenizer->decode({&id, 1}, tokenizer::ShowSpecial::kYes)));
  std::cout << output_text(lines);
}

void show_template(const TemplateOptions& options) {
  if (!options.caps && options.from_file == options.from_prompt)
    throw Error(ErrorKind::kUsage, "it is not said which messages to write")
        .expected("one of " + Setting::kPrompt + ", " + Setting::kFile + " and " + Setting::kCaps)
        .found(options.from_file ? "both of the first two" : "none")
        .fix("give one of them");
  const tokenizer::ChatTemplate chat = open_chat_template(options.path, options.chat_template);
  if (options.caps) return show_caps(options, chat);
  tokenizer::ChatRequest request =
      options.from_file ? read_chat_request(read_input_text(options.file), input_name(options.file))
                        : one_message(options.prompt);
  if (options.no_generation_prompt) request.add_generation_prompt = false;
  add_template_variables(options.variables, request);
  show_prompt(options, chat, request);
}

}  // namespace

void add_template(Command& app) {
  Command* command = app.add_command("template", "Show the prompt that a chat template makes of messages");
  auto options = std::make_shared<TemplateOptions>();
  add_model_argument(*command, "MODEL", options->path, options->common,
                     "Model directory, packed store, GGUF file, or a name that sluice list shows");
  command->add_option(Setting::kChatTemplate, &options->chat_template,
                      "Template in place of the model's: a file, or chatml");
  Flag* prompt = command->add_option(Setting::kPrompt, &options->prompt, "One message of a user");
  Flag* file = command->add_option(
      Setting::kFile, &options->file,
      "JSON: a list of messages, or an object with messages, tools, reasoning_effort, chat_template_kwargs, "
      "add_generation_prompt, continue_final_message; - is standard input");
  command->add_flag(Setting::kNoGenerationPrompt, options->no_generation_prompt,
                    "End behind the last message, without the beginning of an answer");
  command->add_option(Setting::kSet, &options->variables,
                      "NAME=JSON, a variable of the template (enable_thinking=false); may be repeated");
  command->add_flag(Setting::kTokens, options->tokens, "Print ids and tokens of the prompt");
  command->add_flag(Setting::kCaps, options->caps, "Print what the template can do");
  add_common_flags(*command, options->common,
                   {.json = "Print {\"prompt\": \"...\"}, with \"ids\", or {\"caps\": {...}}",
                    .quiet = "No warnings on standard error"});
  command->footer(
      "Examples:\n"
      "  sluice template Qwen3-30B-A3B -p \"Hello\" --set enable_thinking=false\n"
      "  sluice template models/fable-moe-18m --chat-template chatml -f messages.json --tokens\n"
      "  sluice template Qwen3-30B-A3B --caps");
  command->callback([options, prompt, file] {
    options->from_prompt = prompt->given();
    options->from_file = file->given();
    show_template(*options);
  });
}

}  // namespace sluice::app
