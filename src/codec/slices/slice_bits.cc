#include "codec/slices/slice_bits.h"

#include <fmt/format.h>

namespace sluice::codec {

std::string slice_bits_text(SliceBits bits) { return fmt::format("{}/{}", bits.high, bits.low); }

std::optional<SliceBits> parse_slice_bits(std::string_view text) {
  for (const SliceBits bits : kStoredSliceBits)
    if (text == slice_bits_text(bits)) return bits;
  return std::nullopt;
}

}  // namespace sluice::codec
