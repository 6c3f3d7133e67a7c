#include "tokenizer/chat/calls/block_text.h"

#include <algorithm>

namespace sluice::tokenizer {
namespace {

constexpr std::size_t kLongestName = 256;

}  // namespace

std::string_view without_blanks_around(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kAnswerBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kAnswerBlanks) - first + 1);
}

bool may_be_name(std::string_view text) {
  const std::string_view name = without_blanks_around(text);
  return name.size() <= kLongestName && std::ranges::none_of(name, [](char one) {
           return static_cast<unsigned char>(one) <= 0x20 || one == kSpecialToken ||
                  std::string_view("<>{}\"").find(one) != std::string_view::npos;
         });
}

std::size_t BlockText::blanks() const { return std::min(held.find_first_not_of(kAnswerBlanks), held.size()); }

BlockRead BlockText::expect(const std::string& mark) {
  if (mark.empty()) return BlockRead::kGoOn;
  const Begins begins = begins_with(behind_blanks(), mark);
  if (begins == Begins::kPerhaps) return BlockRead::kMore;
  if (begins == Begins::kNo) return BlockRead::kBroken;
  take(blanks() + mark.size());
  return BlockRead::kGoOn;
}

std::size_t BlockText::find(const std::string& mark) {
  const std::size_t at = held.find(mark, searched_ < mark.size() ? 0 : searched_ - mark.size());
  if (at == std::string::npos) searched_ = held.size();
  return at;
}

}  // namespace sluice::tokenizer
