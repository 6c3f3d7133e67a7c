// Where a text is cut: each pattern walks over a text and reports its matches and the text between them, in
// order.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/function_ref.h"

namespace sluice::tokenizer {

// Bytes [begin, end) of the text; a match, or text between matches. Matches may be empty.
struct Match {
  std::size_t begin, end;
  bool matched;
};

class Pattern {
 public:
  virtual ~Pattern() = default;
  // The ranges together cover `text` (well-formed UTF-8). Reports nothing for an empty text.
  virtual void find(std::string_view text, FunctionRef<void(const Match&)> report) const = 0;
};

// Every occurrence of `text`, which must not be empty, from the left without overlap.
std::unique_ptr<Pattern> literal_pattern(std::string text);
// Every single character for which `predicate` holds.
std::unique_ptr<Pattern> character_pattern(bool (*predicate)(char32_t));

}  // namespace sluice::tokenizer
