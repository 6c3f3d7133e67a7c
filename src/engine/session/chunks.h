// A long input, cut into the chunks in which it is fed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "tokenizer/text/token_id.h"

namespace sluice::engine {

// Calls work(begin, part) for parts of at most `chunk` tokens, in order, until it returns false; `begin` is
// the index of the part's first token. Returns the tokens before that part, or all.
template <class Work>
std::size_t each_chunk(std::span<const tokenizer::TokenId> tokens, std::size_t chunk, const Work& work) {
  for (std::size_t begin = 0; begin < tokens.size(); begin += chunk)
    if (!work(begin, tokens.subspan(begin, std::min(chunk, tokens.size() - begin)))) return begin;
  return tokens.size();
}

}  // namespace sluice::engine
