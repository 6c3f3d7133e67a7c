// How a chat shows answers: text as it comes, reasoning dimmed, on a terminal; plain text, or a line of JSON
// each, elsewhere.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "commands/chat/chat_model.h"
#include "commands/chat/turn_statistics.h"
#include "report/live_text.h"

namespace sluice::app {

// Thread-compatible. One answer at a time: begin(), events, end().
class ChatOutput {
 public:
  ChatOutput(bool json, bool quiet);
  void begin(const engine::Engine& engine);
  void prompt(double done, std::size_t tokens);  // a line that goes when the answer begins
  void event(const tokenizer::AnswerEvent& event, Think think);
  void end(const ChatAnswer& answer, const ChatSettings& settings, std::size_t context);

 private:
  void show(const std::string& text, Tone tone);
  void reasoning(const std::string& text, Think think);
  void part_from(const char* behind_content);  // what stands between a part and the one before it

  const bool json_, quiet_, terminal_, colour_;
  std::unique_ptr<LiveText> live_;
  std::unique_ptr<TurnStatistics> statistics_;
  bool first_ = true;       // no answer came before this
  bool reasons_ = false;    // the last part was reasoning
  bool content_ = false;    // it was content
  bool call_ = false;       // it was a call
  std::size_t hidden_ = 0;  // pieces of reasoning that nobody reads
};

}  // namespace sluice::app
