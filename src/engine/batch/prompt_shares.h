// How prompts share a pass.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sluice::engine {

// Tokens of each prompt in a pass of at most `chunk` tokens; `needs`: what each lacks, the oldest prompt
// first. The oldest takes what it needs, but while others wait at most seven eighths of the chunk; then come
// those that fit whole, the shortest first; and what no other prompt fits into is the oldest one's again.
// REQUIRES: chunk >= 1, and no need is 0.
std::vector<std::size_t> prompt_shares(std::span<const std::size_t> needs, std::size_t chunk);

}  // namespace sluice::engine
