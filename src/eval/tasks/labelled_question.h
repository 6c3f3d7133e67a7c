// A question whose choices have labels, as ARC and OpenBookQA are published: by AI2
//   {"question": {"stem": "…", "choices": [{"label": "A", "text": "…"}, …]}, "answerKey": "A"}
// and on the Hugging Face hub (the question under "question" or "question_stem")
//   {"question": "…", "choices": {"label": ["A", …], "text": ["…", …]}, "answerKey": "A"}.
#pragma once

#include <string>
#include <vector>

#include "base/json/json.h"

namespace sluice::eval {

struct LabelledQuestion {
  std::string stem;
  std::vector<std::string> choices;
  std::size_t answer = 0;
};

// Error(kInvalid) naming the line and the field.
LabelledQuestion labelled_question(const JsonObject& line);

// The place of `label` in `labels`: Error(kInvalid) naming `place` unless it is there exactly once.
std::size_t answer_of(const std::vector<std::string>& labels, const std::string& label,
                      const std::string& place);

}  // namespace sluice::eval
