// The grammar of a whole answer: reasoning, then a text of some form, or calls of tools as the model's
// family writes them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/grammar/grammar.h"
#include "engine/grammar/schema_value.h"
#include "tokenizer/chat/calls/family.h"
#include "tokenizer/tokenizer.h"

namespace sluice::engine {

// A schema, where it stands in the request, and whether what a grammar cannot hold is an error.
struct BoundSchema {
  SchemaValue schema;
  std::string path;
  bool strict = false;
};

struct BoundTool {
  std::string name;
  BoundSchema arguments;
};

enum class Calls {
  kNone,
  kMay,   // instead of the text of the form; without a form, free text may stand around them
  kMust,  // nothing else
};

struct AnswerBinding {
  std::optional<BoundSchema> form;  // the text's form
  Calls calls = Calls::kNone;
  std::vector<BoundTool> tools;  // that may be called
  bool one_call = false;
  std::string prompt_tail;  // the prompt's last text: whether reasoning is open
};

struct BoundAnswer {
  std::shared_ptr<const Grammar> grammar;
  std::vector<std::string> left_out;  // keywords that the grammar does not hold
};

// `format`: how the model writes reasoning and calls; `tokenizer`: which of its marks are special tokens.
// Error(kInvalid) names the place in a schema that no grammar holds; Error(kUnsupported): the family's
// calls cannot be bound so.
BoundAnswer bound_answer(const AnswerBinding& binding, const tokenizer::AnswerFormat& format,
                         const tokenizer::Tokenizer& tokenizer);

}  // namespace sluice::engine
