// One question with answers to choose from, as a model is asked it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sluice::eval {

struct ChoiceItem {
  std::string context;               // the prompt, without the answer
  std::vector<std::string> choices;  // at least two; a model is given context + " " + choice
  std::size_t answer = 0;            // the right one
};

}  // namespace sluice::eval
