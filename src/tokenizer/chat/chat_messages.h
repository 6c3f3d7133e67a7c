// Messages of a request in the form that a template can render.
#pragma once

#include "tokenizer/chat/chat_caps.h"
#include "tokenizer/template/value.h"

namespace sluice::tokenizer {

struct ChatMessages {
  jinja::Value messages;  // a list of dictionaries
  jinja::Value tools;     // a list, or none
};

// Drops members that are null, gives reasoning under the names `reasoning_content` and `thinking`,
// arguments of calls as objects where they are JSON objects, ids as `caps` says, and changes what it says the
// template cannot do. Roles and types of parts that are known words count as the template's text.
// Error(kInvalid) naming the message.
ChatMessages fitted_messages(const jinja::Value& messages, const jinja::Value& tools, const ChatCaps& caps);

}  // namespace sluice::tokenizer
