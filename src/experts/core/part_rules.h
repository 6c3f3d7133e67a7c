// What follows from the parts in which an expert is stored (SPEC §5.1): a table with one row for each family.
// Who reads, keeps or computes with parts asks the row; a new family is a row.
#pragma once

#include <cstdint>
#include <span>

#include "experts/core/ids.h"

namespace sluice::experts {

enum class Family : std::uint8_t {
  kRaw,     // full
  kSplit,   // sm + exp
  kSliced,  // msb + lsb
};

// Where an expert's whole words (part `full`) come from.
enum class WordSource : std::uint8_t {
  kStored,   // the region `base` is them, as it is read
  kMerged,   // exponents are decoded and merged with signs and mantissas, out of both regions
  kNowhere,  // none are made: kernels compute from what is stored
};

struct PartRules {
  Family family;
  // An expert is stored in two regions, which are read and kept apart (codec::PlaneRegion). The part in each;
  // `rest` is empty where the family has only one.
  Part base;
  Parts rest;
  Parts stored;  // both
  Parts least;   // stored parts that make a view
  WordSource words;
  // A use names the parts that it computes with (Admission::view), at least `least`, and only those are read.
  // False: a use names none, and takes `full`, or all that is stored.
  bool named_parts;
  std::span<const Parts> states;  // that may be resident, besides no part

  // Stored parts that a use which names `view` needs if it finds no words.
  constexpr Parts needed(Parts view) const { return named_parts ? view | least : stored; }
  // Whether some of these parts are in the region.
  constexpr bool in_base(Parts parts) const { return parts.has(base); }
  constexpr bool in_rest(Parts parts) const { return parts - rest != parts; }
  // The sizes of an expert whose regions and words have these.
  ExpertBytes bytes(Bytes base_bytes, Bytes rest_bytes, Bytes words_bytes) const;
};

// In the order of Family.
std::span<const PartRules> all_part_rules();
const PartRules& part_rules(Family family);

}  // namespace sluice::experts
