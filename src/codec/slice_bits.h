// How many bits the codes of a sliced expert have, and how many of them its higher slice (SPEC 4.2).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::codec {

struct SliceBits {
  unsigned high = 8;  // of a code: both slices
  unsigned low = 4;   // of them, the higher ones: slice MSB, which has the scales and zero points, too
  constexpr unsigned shift() const { return high - low; }  // slice LSB
  bool operator==(const SliceBits&) const = default;
};

// Those that a store may have.
inline constexpr std::array<SliceBits, 3> kStoredSliceBits = {{{8, 4}, {6, 3}, {4, 2}}};
// "8/4" and back; nothing unless it is one of these.
std::optional<SliceBits> parse_slice_bits(std::string_view text);
std::string slice_bits_text(SliceBits bits);

// Of the codes of a store, in its manifest.
inline constexpr std::string_view kAmat = "amat";

}  // namespace sluice::codec
