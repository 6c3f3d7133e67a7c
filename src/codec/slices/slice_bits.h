// Bits of a sliced expert's codes, and how many of them its higher slice holds (SPEC 4.2).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::codec {

struct SliceBits {
  unsigned high = 8;  // bits of a code: both slices
  // The higher bits of a code: slice MSB, which also has the scales and zero points.
  unsigned low = 4;
  constexpr unsigned shift() const { return high - low; }  // slice LSB
  bool operator==(const SliceBits&) const = default;
};

// The pairs that a store may have.
inline constexpr std::array<SliceBits, 3> kStoredSliceBits = {{{8, 4}, {6, 3}, {4, 2}}};
// Parses and prints "8/4"; parsing gives nothing unless the pair is one of kStoredSliceBits.
std::optional<SliceBits> parse_slice_bits(std::string_view text);
std::string slice_bits_text(SliceBits bits);

// The name of the codes in a store's manifest.
inline constexpr std::string_view kAmat = "amat";

}  // namespace sluice::codec
