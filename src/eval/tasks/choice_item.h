// One question with answers to choose from, in the form in which a model is asked.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sluice::eval {

struct ChoiceItem {
  std::string context;               // the prompt, without the answer
  std::vector<std::string> choices;  // at least two; the model gets context + " " + choice
  std::size_t answer = 0;            // index of the right choice
};

}  // namespace sluice::eval
