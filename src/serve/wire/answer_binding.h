// What the answer of a chat is bound to, from the fields of any API.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/grammar/answer_grammar.h"
#include "serve/http/request.h"
#include "serve/json/body_value.h"
#include "serve/text_request.h"

namespace sluice::serve {

struct ChatPrompt;      // serve/wire/chat_prompt.h
struct PreparedPrompt;  // serve/wire/chat_prompt.h
struct Served;          // serve/backend.h

// Grammars that were made for earlier requests. Thread-safe.
class GrammarShelf {
 public:
  std::shared_ptr<const engine::BoundAnswer> find(const std::string& key);
  void keep(std::string key, std::shared_ptr<const engine::BoundAnswer> answer);

 private:
  struct Kept {
    std::string key;
    std::shared_ptr<const engine::BoundAnswer> answer;
    std::size_t bytes;
  };
  std::mutex mutex_;
  std::list<Kept> kept_;  // the last used first
  std::size_t bytes_ = 0;
};

// A tool of the request.
struct NamedTool {
  std::string name;
  const BodyValue* schema = nullptr;  // the schema of its arguments; null: none was given
  std::string path;                   // the path of the schema
  bool strict = false;
};

struct ToolChoice {
  engine::Calls calls = engine::Calls::kMay;
  std::vector<std::string> names = {};  // names of the tools that may be called; none: all
  std::string path = "tool_choice";
};

// Binds calls as far as they are forced or strict. ApiError: a tool that is not there, a schema that is
// too large.
void bind_calls(const std::vector<NamedTool>& tools, const ToolChoice& choice, ChatPrompt& chat);

// Makes the grammar, if the answer is bound. ApiError: what no grammar can hold.
void bind_answer(const ChatPrompt& chat, const Sampling& sampling, const Served& served, GrammarShelf& shelf,
                 PreparedPrompt& prompt);

// The header that names the keywords which a grammar does not hold; none: there are none.
http::Headers left_out_header(const PreparedPrompt& prompt);

}  // namespace sluice::serve
