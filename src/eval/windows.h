// Cuts a text into the windows that a model sees at a time: "Perplexity of fixed-length models" of Hugging
// Face transformers.
#pragma once

#include <cstddef>
#include <vector>

namespace sluice::eval {

// Tokens [begin, end) of a text; tokens [scored, end) are scored, each from the tokens before it in the
// window.
struct Window {
  std::size_t begin = 0, end = 0, scored = 0;
};

// Windows begin every `stride` tokens and have `length` tokens, or end with the text; the first that reaches
// the end of the text is the last. Each window scores the tokens that the one before did not: its last
// `stride` tokens, which therefore have at least length − stride tokens of context. The first token of a text
// is never scored, because no token precedes it; with stride = length this holds for the first token of each
// window. A window that would score nothing is left out. 1 ≤ stride ≤ length.
std::vector<Window> cut_windows(std::size_t tokens, std::size_t length, std::size_t stride);

}  // namespace sluice::eval
