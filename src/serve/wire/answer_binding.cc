#include "serve/wire/answer_binding.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/grammar/schema_text.h"
#include "serve/wire/chat_prompt.h"
#include "serve/wire/schema_of_body.h"

namespace sluice::serve {
namespace {

constexpr std::size_t kMostShelved = std::size_t{1} << 20;  // bytes

// Without parameters nothing may be given.
engine::SchemaValue no_arguments() {
  engine::SchemaValue schema;
  schema.kind = engine::SchemaValue::Kind::kObject;
  schema.set("type", engine::SchemaValue::of_text("object"));
  schema.set("additionalProperties", engine::SchemaValue::of(false));
  return schema;
}

// Equal for bindings that have the same grammar.
std::string shelf_key(const engine::AnswerBinding& binding, const tokenizer::ReasoningMarks& marks) {
  std::string tail = binding.prompt_tail;
  while (!tail.empty() && std::string_view(" \t\r\n").find(tail.back()) != std::string_view::npos)
    tail.pop_back();
  std::string key = fmt::format("{} {} {}", static_cast<int>(binding.calls), binding.one_call,
                                tail.ends_with(marks.begin) ? 1
                                : tail.ends_with(marks.end) ? 2
                                                            : 0);
  const auto add = [&](const engine::BoundSchema& bound) {
    key += fmt::format("\n{} {} {}", bound.path, bound.strict, engine::schema_text(bound.schema));
  };
  if (binding.form) add(*binding.form);
  for (const engine::BoundTool& tool : binding.tools) {
    key += "\n" + tool.name;
    add(tool.arguments);
  }
  return key;
}

}  // namespace

std::shared_ptr<const engine::BoundAnswer> GrammarShelf::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find(kept_, key, &Kept::key);
  if (known == kept_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, known);
  return kept_.front().answer;
}

void GrammarShelf::keep(std::string key, std::shared_ptr<const engine::BoundAnswer> answer) {
  const std::size_t bytes = key.size() + answer->grammar->bytes();
  if (bytes > kMostShelved) return;
  const std::lock_guard lock(mutex_);
  while (!kept_.empty() && bytes_ + bytes > kMostShelved) {
    bytes_ -= kept_.back().bytes;
    kept_.pop_back();
  }
  bytes_ += bytes;
  kept_.push_front({std::move(key), std::move(answer), bytes});
}

void bind_calls(const std::vector<NamedTool>& tools, const ToolChoice& choice, ChatPrompt& chat) {
  for (const std::string& name : choice.names)
    if (std::ranges::find(tools, name, &NamedTool::name) == tools.end())
      throw ApiError(400, "invalid_value",
                     fmt::format("'{}' must name tools of the request, found \"{}\"", choice.path, name))
          .about(choice.path);
  const bool forced = choice.calls == engine::Calls::kMust;
  if (forced && tools.empty())
    throw ApiError(400, "invalid_value",
                   fmt::format("'{}' asks for a call, and the request has no tools", choice.path))
        .about(choice.path);
  const bool strict = std::ranges::any_of(tools, &NamedTool::strict);
  if (tools.empty() || (!forced && !strict && choice.names.empty() && !chat.binding.form)) return;
  chat.binding.calls = choice.calls;
  for (const NamedTool& tool : tools) {
    if (!choice.names.empty() && std::ranges::find(choice.names, tool.name) == choice.names.end()) continue;
    engine::SchemaValue schema =
        tool.schema == nullptr ? no_arguments() : schema_of_body(*tool.schema, tool.path);
    chat.binding.tools.push_back({tool.name, {std::move(schema), tool.path, tool.strict}});
  }
}

void bind_answer(const ChatPrompt& chat, const Sampling& sampling, const Served& served, GrammarShelf& shelf,
                 PreparedPrompt& prompt) {
  engine::AnswerBinding binding = chat.binding;
  if (!binding.form && binding.calls == engine::Calls::kNone) return;
  if (sampling.ignore_eos)
    throw ApiError(400, "invalid_value", "'ignore_eos' must be false where the answer is bound to a form")
        .about("ignore_eos");
  if (served.tokenizer == nullptr || served.answer_format.family == nullptr)
    throw ApiError(400, "unsupported_value", "answers of this model cannot be bound to a form");
  binding.prompt_tail = prompt.parsing.prompt_tail;
  binding.one_call = chat.one_call;
  std::string key = shelf_key(binding, served.answer_format.reasoning);
  std::shared_ptr<const engine::BoundAnswer> answer = shelf.find(key);
  if (answer == nullptr) {
    try {
      answer = std::make_shared<const engine::BoundAnswer>(
          engine::bound_answer(binding, served.answer_format, *served.tokenizer));
    } catch (const Error& error) {
      const bool schema = error.kind() == ErrorKind::kInvalid;
      throw ApiError(400, schema ? "invalid_json_schema" : "unsupported_value", error.what())
          .about(error.where());
    }
    shelf.keep(std::move(key), answer);
  }
  prompt.grammar = answer->grammar;
  prompt.left_out = answer->left_out;
  prompt.parsing.bound = binding.calls != engine::Calls::kMust && binding.form.has_value();
}

http::Headers left_out_header(const PreparedPrompt& prompt) {
  if (prompt.left_out.empty()) return {};
  return {{"x-sluice-schema-ignored", fmt::format("{}", fmt::join(prompt.left_out, ", "))}};
}

}  // namespace sluice::serve
