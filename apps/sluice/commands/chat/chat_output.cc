#include "commands/chat/chat_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

#include "base/json/json.h"
#include "base/setting.h"
#include "engine/generate/generate.h"
#include "streams/standard_error.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {

std::string dimmed(const std::string& line) {
  return ::isatty(STDERR_FILENO) == 1 && colour_allowed() ? "\x1b[2m" + line + "\x1b[0m" : line;
}

Json answer_json(const ChatAnswer& answer, const TurnStatistics& statistics) {
  Json json = {{"content", answer.content}};
  if (!answer.reasoning.empty()) json["reasoning_content"] = answer.reasoning;
  if (!answer.calls.empty()) json["tool_calls"] = calls_json(answer.calls);
  json["stop_reason"] = engine::stop_reason_name(answer.result.reason);
  json["statistics"] = statistics.json(answer.prompt_tokens, answer.result);
  return json;
}

}  // namespace

ChatOutput::ChatOutput(bool json, bool quiet)
    : json_(json), quiet_(quiet), terminal_(!json && stdout_moves_cursor()), colour_(colour_allowed()) {}

void ChatOutput::begin(const engine::Engine& engine) {
  statistics_ = std::make_unique<TurnStatistics>(engine.report());
  if (json_) return;
  if (!first_ && !terminal_) std::cout << '\n';
  first_ = false;
  reasons_ = content_ = call_ = false;
  hidden_ = 0;
  live_ = std::make_unique<LiveText>(terminal_, colour_, nullptr);
}

void ChatOutput::show(const std::string& text, Tone tone) { live_->write(text, tone); }

void ChatOutput::prompt(double done, std::size_t tokens) {
  if (terminal_ && !quiet_ && ::isatty(STDERR_FILENO) == 1)
    draw_live_line(fmt::format("reading {} tokens: {:.0f} %", tokens, 100 * done));
}

void ChatOutput::reasoning(const std::string& text, Think think) {
  if (think == Think::kHide) {
    if (hidden_++ == 0 && terminal_) show("… thinking", Tone::kDim);
    return;
  }
  if (std::exchange(content_, false) || std::exchange(call_, false)) show("\n\n", Tone::kPlain);
  reasons_ = true;
  show(text, Tone::kDim);
}

void ChatOutput::part_from(const char* behind_content) {
  if (std::exchange(reasons_, false)) show("\n\n", Tone::kPlain);
  if (std::exchange(hidden_, 0) > 0 && terminal_) show("\n", Tone::kPlain);
  if (std::exchange(content_, false)) show(behind_content, Tone::kPlain);
  if (std::exchange(call_, false)) show("\n", Tone::kPlain);
}

void ChatOutput::event(const tokenizer::AnswerEvent& event, Think think) {
  using Kind = tokenizer::AnswerEvent::Kind;
  if (json_) return;
  remove_live_line();
  switch (event.kind) {
    case Kind::kReasoning:
      return reasoning(event.text, think);
    case Kind::kContent:
      part_from("");
      content_ = true;
      return show(event.text, Tone::kPlain);
    case Kind::kCallBegin:
      part_from("\n");
      return show("⚙ " + event.name + " ", Tone::kPlain);
    case Kind::kCallArguments:
      return show(event.text, Tone::kPlain);
    case Kind::kCallEnd:
      call_ = true;
  }
}

void ChatOutput::end(const ChatAnswer& answer, const ChatSettings& settings, std::size_t context) {
  if (json_) {
    std::cout << answer_json(answer, *statistics_).dump(-1, ' ', false, Json::error_handler_t::replace)
              << std::endl;
    return;
  }
  remove_live_line();
  live_->finish();
  live_.reset();
  std::cout << '\n' << std::flush;
  const std::size_t columns = terminal_columns(STDERR_FILENO);
  if (settings.statistics && !quiet_)
    write_report(dimmed(statistics_->line(answer.prompt_tokens, answer.result, columns)) + '\n');
  if (answer.result.reason == engine::StopReason::kContext)
    print_message(
        "the context of {} tokens is full, and ended the answer; /undo, /clear or a larger {} make room",
        context, flag(Setting::kContext));
}

}  // namespace sluice::app
