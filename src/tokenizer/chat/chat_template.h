// A model's chat template: turns the messages of a conversation into the text of a prompt
// (docs/chat-templates.md).
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/chat/chat_caps.h"
#include "tokenizer/chat/chat_sources.h"
#include "tokenizer/template/template.h"
#include "tokenizer/template/value.h"
#include "tokenizer/text/marked_text.h"

namespace sluice::tokenizer {

// What a prompt is made of. Strings that a client has sent have the origin Origin::kRequest
// (jinja::read_json).
struct ChatRequest {
  jinja::Value messages;                        // a list of {"role": …, "content": …, …}
  jinja::Value tools{jinja::None{}};            // a list, or none
  jinja::Value kwargs{jinja::None{}};           // a dictionary of more variables, over all others; or none
  std::optional<std::string> reasoning_effort;  // "none" also sets enable_thinking to false
  bool add_generation_prompt = true;
  bool continue_final_message = false;  // the prompt ends within the last message, at its end
  std::optional<std::tm> now;           // for tests; empty: the machine's time
};

// Immutable; thread-safe.
class ChatTemplate {
 public:
  // Parses all templates and asks what they can do. Error(kInvalid) naming the place for a template that
  // cannot be parsed. REQUIRES: there is one
  explicit ChatTemplate(const ChatSources& sources);

  // The text, without what a tokenizer adds around one: templates write their begin token themselves.
  // Error(kInvalid): what the template refuses, and messages that are no messages.
  MarkedText render(const ChatRequest& request) const;

  const ChatCaps& caps(bool with_tools) const { return chosen(with_tools).caps; }
  const std::string& place(bool with_tools) const { return chosen(with_tools).parsed.name(); }
  const std::string& source(bool with_tools) const { return chosen(with_tools).parsed.source(); }

 private:
  struct Named {
    std::string name;
    Template parsed;
    ChatCaps caps;
  };
  // `tool_use` for requests with tools, else `default`, else the first.
  const Named& chosen(bool with_tools) const;
  void set_tokens(jinja::Dict& variables) const;
  MarkedText render_fitted(const ChatRequest& request) const;
  MarkedText render_with(const Named& one, const ChatRequest& request, const jinja::Value& messages,
                         const jinja::Value& tools) const;

  std::vector<Named> templates_;
  std::vector<std::pair<std::string, std::string>> tokens_;
};

}  // namespace sluice::tokenizer
