// The messages of a chat.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json/json.h"

namespace sluice::app {

// A call of a tool. A chat shows it, and makes none.
struct ChatCall {
  std::string id, name, arguments;
};

// Thread-compatible.
class Dialogue {
 public:
  void set_system(std::string text) { system_ = std::move(text); }  // "": none
  const std::string& system() const { return system_; }
  bool empty() const { return messages_.empty(); }

  void ask(const std::string& text);
  void answer(const std::string& text, const std::string& reasoning, std::vector<ChatCall> calls);
  // Forgets the last answer, where there is one; the question stays. False where nothing was asked.
  bool take_back_answer();
  // Forgets the last question and its answer, and says the question; false where there is none.
  bool take_back(std::string* question = nullptr);
  void clear() { messages_.clear(); }  // the system's message stays

  // [{role, content, reasoning_content, tool_calls}], the system's first.
  Json messages() const;
  // Error(kInvalid) in `file`, and nothing changed, for anything but such messages of text, the last of them
  // an answer.
  void load(const Json& messages, const std::string& file);

 private:
  std::string system_;
  struct Message {
    std::string content, reasoning;
    std::vector<ChatCall> calls;
  };
  std::vector<Message> messages_;  // by turns from the user and the model
  bool answered() const { return messages_.size() % 2 == 0; }
};

// As messages have them: [{id, type, function: {name, arguments}}].
Json calls_json(const std::vector<ChatCall>& calls);

}  // namespace sluice::app
