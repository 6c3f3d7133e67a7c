// BoolQ: "{passage}\nQuestion: {question}?\nAnswer:", no or yes.
#include <fmt/format.h>

#include "eval/tasks/choice_tasks.h"
#include "eval/tasks/data_lines.h"

namespace sluice::eval {
namespace {

// "label" of SuperGLUE (false, 0 or "false") or "answer" of the data set itself (false).
bool is_yes(const JsonObject& line) {
  const char* const key = line.has("label") ? "label" : "answer";
  const Json* const value = line.find(key);
  if (value != nullptr && value->is_boolean()) return value->get<bool>();
  if (value != nullptr && (*value == 0 || *value == "false")) return false;
  if (value != nullptr && (*value == 1 || *value == "true")) return true;
  line.fail(key, "true or false");
}

}  // namespace

std::vector<ChoiceItem> read_boolq(std::string_view text, const std::string& file) {
  std::vector<ChoiceItem> items;
  each_json_line(text, file, [&](const JsonObject& line) {
    const std::string passage = line.string("passage"), question = line.string("question");
    check_text(question, line.name(), "question");
    items.push_back({fmt::format("{}\nQuestion: {}?\nAnswer:", passage, question),
                     {"no", "yes"},
                     is_yes(line) ? 1u : 0u});
  });
  check_any(items.size(), file);
  return items;
}

}  // namespace sluice::eval
