// Messages and tools of OpenAI's API, checked, and brought into the one form that chat templates know.
#pragma once

#include "serve/json/body_value.h"
#include "serve/wire/chat_prompt.h"
#include "serve/wire/fields.h"

namespace sluice::serve {

// An array of messages; parts that are no text are refused. ApiError naming the field.
BodyValue read_messages(const Fields& body);
// Tools as templates know them, and what binds their calls; nothing where none may be called.
void read_tools(const Fields& body, ChatPrompt& chat);

// A member by its name in an object that is being made.
void set_member(BodyValue& object, std::string_view name, BodyValue value);

}  // namespace sluice::serve
