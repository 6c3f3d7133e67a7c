#include "experts/core/part_rules.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::experts {
namespace {

constexpr Parts kBothPlanes = Part::kSm | Part::kExp, kBothSlices = Part::kMsb | Part::kLsb;

constexpr Parts kRawStates[] = {Part::kFull};
constexpr Parts kSplitStates[] = {Part::kFull, kBothPlanes, Part::kSm, Part::kExp};
constexpr Parts kSlicedStates[] = {kBothSlices, Part::kMsb};

constexpr PartRules kRules[] = {
    {.family = Family::kRaw,
     .base = Part::kFull,
     .rest = {},
     .stored = Part::kFull,
     .least = Part::kFull,
     .words = WordSource::kStored,
     .named_parts = false,
     .states = kRawStates},
    {.family = Family::kSplit,
     .base = Part::kSm,
     .rest = Part::kExp,
     .stored = kBothPlanes,
     .least = kBothPlanes,
     .words = WordSource::kMerged,
     .named_parts = false,
     .states = kSplitStates},
    {.family = Family::kSliced,
     .base = Part::kMsb,
     .rest = Part::kLsb,
     .stored = kBothSlices,
     .least = Part::kMsb,
     .words = WordSource::kNowhere,
     .named_parts = true,
     .states = kSlicedStates},
};

// An answer for each set of parts, made once out of the rules, because caches ask it for every expert.
using SetTable = std::array<bool, (static_cast<unsigned>(Part::kLsb) << 1)>;
constexpr SetTable answers(bool (*asks)(const PartRules&, Parts)) {
  SetTable table = {};
  for (unsigned bits = 0; bits < table.size(); ++bits)
    for (const PartRules& rules : kRules) table[bits] |= asks(rules, Parts::from_bits(bits));
  return table;
}
constexpr SetTable kLegal = answers([](const PartRules& rules, Parts parts) {
  return parts.empty() || std::ranges::find(rules.states, parts) != rules.states.end();
});
constexpr SetTable kComputable =
    answers([](const PartRules& rules, Parts parts) { return parts.has_all(rules.least); });

}  // namespace

std::span<const PartRules> all_part_rules() { return kRules; }

bool is_legal(Parts parts) { return kLegal.at(parts.bits()); }
bool is_computable(Parts parts) { return kComputable.at(parts.bits()); }

ExpertBytes PartRules::bytes(Bytes base_bytes, Bytes rest_bytes, Bytes words_bytes) const {
  ExpertBytes bytes{.full = words_bytes};
  for (const auto& [part, member] : {std::pair{Part::kSm, &bytes.sm},
                                     {Part::kExp, &bytes.exp},
                                     {Part::kMsb, &bytes.msb},
                                     {Part::kLsb, &bytes.lsb}}) {
    if (in_base(part)) *member = base_bytes;
    if (in_rest(part)) *member = rest_bytes;
  }
  return bytes;
}

const PartRules& part_rules(Family family) { return kRules[static_cast<std::size_t>(family)]; }

}  // namespace sluice::experts
