// The ways in which models write calls of tools and reasoning: a row each (docs/chat-templates.md).
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace sluice::tokenizer {

// What stands between the marks of a call.
enum class CallBody {
  kObject,      // JSON: {"name": …, "arguments": …}
  kArguments,   // the name, then JSON of the arguments
  kParameters,  // the name, then each parameter as text between marks
  kChannels     // messages with headers that say what they are, as gpt-oss writes them
};

// How calls are named in answers.
enum class CallIds {
  kCall,    // call_ and 24 letters and digits
  kNine,    // 9 letters and digits
  kCounted  // functions.NAME:k, where k counts all calls of the conversation
};

// Marks stand in the order in which they are written; empty ones are not written. Between any two of them,
// and around JSON, blanks may stand.
struct CallFamily {
  std::string_view name;
  // A template is of this family if its source holds all of these literals.
  std::array<std::string_view, 2> literals;
  CallBody body = CallBody::kObject;
  CallIds ids = CallIds::kCall;
  std::string_view section_begin = {};  // around all calls
  std::string_view list_begin = {};     // then
  std::string_view call_begin = {};     // around each call
  std::string_view name_begin = {};     // around its name
  std::string_view id_begin = {};       // may stand between the name and `name_end`, with an id behind it
  std::string_view name_end = {};
  std::string_view json_begin = {};  // around the arguments
  std::string_view json_end = {};
  std::string_view key_begin = {};  // around a parameter's name
  std::string_view key_end = {};
  std::string_view value_begin = {};  // around its value; attributes may stand before
  std::string_view value_end = {};
  bool lines = false;  // values stand on lines of their own
  std::string_view call_end = {};
  std::string_view separator = {};  // between calls
  std::string_view list_end = {};
  std::string_view section_end = {};
};

std::span<const CallFamily> call_families();
// Error(kUsage) that lists the names, for a name of none.
const CallFamily& call_family(std::string_view name);
// By the literals in the source of a chat template. The first row where none fits: models without a format of
// their own learn it from the system message.
const CallFamily& detected_call_family(std::string_view template_source);

// The texts around reasoning. Empty ones: the model has none.
struct ReasoningMarks {
  std::string_view begin, end;
};

// How the answers of a model are written.
struct AnswerFormat {
  const CallFamily* family = nullptr;
  // What the system message told of calls, where the template itself tells nothing; null: it does. Both ways
  // are understood, since models fall back to what they know.
  const CallFamily* told = nullptr;
  ReasoningMarks reasoning;
};
// By the source of its chat template; the family by name, if one is given (Setting::kToolFormat).
// Error(kUsage) for a name of none. `tells_tools`: the template shows tools (ChatCaps::tools).
AnswerFormat answer_format(std::string_view template_source, std::string_view family_name = {},
                           bool tells_tools = true);

}  // namespace sluice::tokenizer
