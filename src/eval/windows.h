// How a text is cut into what a model sees at a time: "Perplexity of fixed-length models" of Hugging Face
// transformers.
#pragma once

#include <cstddef>
#include <vector>

namespace sluice::eval {

// Tokens [begin, end) of a text; of them [scored, end) are scored, each from the tokens before it in the
// window.
struct Window {
  std::size_t begin = 0, end = 0, scored = 0;
};

// Windows begin every `stride` tokens and have `length`, or end with the text; the first that reaches its end
// is the last. Each scores what the one before did not: its last `stride` tokens, so that they have length −
// stride tokens of context at least. A window's first token has nothing before it and is not scored, and
// where stride = length that holds for each window; one that would score nothing is left out. 1 ≤ stride ≤
// length.
std::vector<Window> cut_windows(std::size_t tokens, std::size_t length, std::size_t stride);

}  // namespace sluice::eval
