// A chat from its first line to its last: turns, commands, Ctrl-C.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "commands/chat/chat_model.h"
#include "commands/chat/chat_output.h"
#include "commands/chat/chat_settings.h"
#include "commands/chat/dialogue.h"
#include "commands/chat/line_reader.h"
#include "commands/chat/slash_command.h"

namespace sluice::app {

// Thread-compatible. The model must outlive it.
class ChatSession {
 public:
  // `person`: somebody sits at the terminal, so that a wrong line is told and the chat goes on; else it ends
  // the program.
  ChatSession(ChatModel& model, ChatSettings settings, std::string system, bool json, bool quiet,
              bool person);

  void answer_one(const std::string& question);  // one turn
  void converse(LineReader& lines);              // to the end of the input, or /exit

 private:
  enum class Next { kGoOn, kLeave };
  Next take_line(LineReader& lines);
  Next obey(const SlashCommand& command);
  void ask(const std::string& question);
  // Answers the last question of `asked`, which becomes the dialogue once some of the answer is there.
  void answer(Dialogue asked);
  void edit();
  void show() const;
  void show_statistics() const;
  // Ctrl-C at the prompt: a second one soon leaves.
  void hint_how_to_leave(bool typed);

  ChatModel& model_;
  ChatSettings settings_;
  Dialogue dialogue_;
  ChatOutput output_;
  const bool person_, quiet_;
  std::size_t used_ = 0;  // tokens of the last prompt and its answer
  std::optional<std::chrono::steady_clock::time_point> hinted_;
};

}  // namespace sluice::app
