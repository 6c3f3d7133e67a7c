// How calls are named.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/splitmix64.h"

namespace sluice::tokenizer {

// Letters and digits, drawn at random.
std::string drawn_letters(std::size_t count, SplitMix64& random);
bool is_nine_letters(std::string_view id);
// The id itself if it is nine letters and digits; else nine that depend on it alone, so that a call and its
// result are named alike.
std::string nine_letters(std::string_view id);

}  // namespace sluice::tokenizer
