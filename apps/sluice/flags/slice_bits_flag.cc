#include "flags/slice_bits_flag.h"

#include <optional>

#include "base/setting.h"
#include "base/unknown_name.h"

namespace sluice::app {

std::vector<std::string> slice_bits_names() {
  std::vector<std::string> names;
  for (const codec::SliceBits bits : codec::kStoredSliceBits) names.push_back(codec::slice_bits_text(bits));
  return names;
}

codec::SliceBits slice_bits_flag(const std::string& text) {
  if (const std::optional<codec::SliceBits> bits = codec::parse_slice_bits(text)) return *bits;
  throw unknown_name(Setting::kSlices, text, slice_bits_names(), "unknown slices");
}

}  // namespace sluice::app
