// What proposes the next tokens of an answer. docs/drafts.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::engine {

enum class DraftKind : std::uint8_t {
  kNone,
  kNgram,  // what followed when the text last ended as it does now
};
// Parse and print "none" "ngram". Error(kUsage). (options.cc)
DraftKind parse_draft(std::string_view text);
std::string_view draft_name(DraftKind kind);

inline constexpr std::size_t kMostDrafts = 4;  // tokens of a sequence that one step computes ahead

}  // namespace sluice::engine
