#include "tokenizer/chat/calls/call_ids.h"

#include <algorithm>
#include <span>

#include "base/hash.h"

namespace sluice::tokenizer {
namespace {

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::size_t kNine = 9;

}  // namespace

std::string drawn_letters(std::size_t count, SplitMix64& random) {
  std::string letters;
  while (letters.size() < count) letters += kLetters[random.next() % kLetters.size()];
  return letters;
}

bool is_nine_letters(std::string_view id) {
  return id.size() == kNine &&
         std::ranges::all_of(id, [](char one) { return kLetters.find(one) != std::string_view::npos; });
}

std::string nine_letters(std::string_view id) {
  if (is_nine_letters(id)) return std::string(id);
  SplitMix64 random(xxh3(std::as_bytes(std::span(id))));
  return drawn_letters(kNine, random);
}

}  // namespace sluice::tokenizer
