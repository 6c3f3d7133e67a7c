// The grammar of calls of tools, as a family of models writes them (tokenizer/chat/calls/family.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/grammar/answer_grammar.h"
#include "engine/grammar/grammar_builder.h"
#include "engine/grammar/json_parts.h"
#include "engine/grammar/schema_grammar.h"
#include "tokenizer/chat/calls/family.h"

namespace sluice::engine {

struct CallableTool {
  std::string name;
  const BoundSchema* arguments = nullptr;
  SchemaGrammar* schema = nullptr;
  GrammarPart body = {};  // what stands between the name and the end of a call; made by prepare()
};

// What it is given must outlive it.
class CallGrammar {
 public:
  // `family`: null if no calls are written.
  CallGrammar(GrammarBuilder& builder, JsonParts& parts, const tokenizer::CallFamily* family,
              const tokenizer::Tokenizer& tokenizer)
      : builder_(builder), parts_(parts), family_(family), tokenizer_(tokenizer) {}

  void prepare(CallableTool& tool);
  // One call or more of these tools. Each list of prepared tools is used once.
  GrammarPart calls(const std::vector<CallableTool>& tools, bool only_one);
  // Free text, with such calls in it.
  GrammarPart free_calls(const std::vector<CallableTool>& tools, bool only_one);

 private:
  GrammarPart mark(std::string_view text);
  GrammarPart space() { return builder_.call(parts_.space()); }
  GrammarPart call_of(const CallableTool& tool);
  GrammarPart any_call(const std::vector<CallableTool>& tools);
  GrammarPart parameters(const CallableTool& tool);
  GrammarPart parameter(const CallableTool& tool, const std::string& name, const SchemaValue& schema,
                        const std::string& path);
  GrammarPart raw_value(const CallableTool& tool, const SchemaValue& schema, const std::string& path);
  // From the first mark to the last; without the first one where it has been read.
  GrammarPart block(const std::vector<CallableTool>& tools, bool only_one, bool opened);

  GrammarBuilder& builder_;
  JsonParts& parts_;
  const tokenizer::CallFamily* const family_;
  const tokenizer::Tokenizer& tokenizer_;
};

}  // namespace sluice::engine
