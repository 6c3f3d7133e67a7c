#include "tokenizer/stages/chars_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {
namespace {

std::uint32_t read_u32(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

// Fields of a unit of darts-clone.
bool has_leaf(std::uint32_t unit) { return (unit >> 8 & 1) != 0; }
std::uint32_t value(std::uint32_t unit) { return unit & 0x7fffffff; }
std::uint32_t label(std::uint32_t unit) { return unit & 0x800000ff; }
std::uint32_t offset(std::uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); }

}  // namespace

CharsMap::CharsMap(std::string_view bytes, const std::string& where) {
  const auto invalid = [&](std::string_view what) { return Error(ErrorKind::kInvalid, what).in(where); };
  const std::uint64_t trie = bytes.size() < 4 ? 0 : read_u32(bytes, 0);
  if (trie == 0 || trie % 4 != 0 || trie > bytes.size() - 4) {
    throw invalid("the map of characters has no whole trie")
        .expected("four bytes of length, and as many bytes of trie")
        .found(fmt::format("{} bytes, of which the trie should have {}", bytes.size(), trie));
  }
  units_.resize(trie / 4);
  for (std::size_t i = 0; i < units_.size(); ++i) units_[i] = read_u32(bytes, 4 + 4 * i);
  replacements_ = bytes.substr(4 + trie);
  if (const auto bad = find_invalid_utf8(replacements_))
    throw invalid("the map of characters is not UTF-8")
        .found(fmt::format("byte {} of the replacements", *bad));
  std::size_t longest = 0, begin = 0;
  while (begin < replacements_.size()) {
    const std::size_t end = std::min(replacements_.find('\0', begin), replacements_.size());
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  if (longest > kMaxReplacementBytes) {
    throw invalid("the map of characters makes one character too long")
        .expected(fmt::format("at most {} bytes", kMaxReplacementBytes))
        .found(fmt::format("{}", longest));
  }
}

std::optional<std::uint32_t> CharsMap::value_of_shortest_prefix(std::string_view text) const {
  std::uint32_t node = offset(units_[0]);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0) return std::nullopt;
    node ^= byte;
    if (node >= units_.size() || label(units_[node]) != byte) return std::nullopt;
    const std::uint32_t unit = units_[node];
    node ^= offset(unit);
    if (node >= units_.size()) return std::nullopt;
    if (has_leaf(unit)) return value(units_[node]);
  }
  return std::nullopt;
}

std::optional<std::string_view> CharsMap::find(std::string_view text) const {
  const auto begin = value_of_shortest_prefix(text);
  if (!begin || *begin > replacements_.size()) return std::nullopt;
  const std::size_t end = std::min(replacements_.find('\0', *begin), replacements_.size());
  const std::string_view found = std::string_view(replacements_).substr(*begin, end - *begin);
  const bool inside = !found.empty() && (static_cast<unsigned char>(found.front()) & 0xc0) == 0x80;
  return inside ? std::nullopt : std::optional(found);
}

}  // namespace sluice::tokenizer
