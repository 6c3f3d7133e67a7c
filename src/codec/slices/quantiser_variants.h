// The variants of Table 1 of SliceMoE: ways to read a group from fewer bits (SPEC 4.2, 6.4, 7.4). For
// evaluation, in double; stores use only `amat` and its views `high`, `amat` and `amat_center`.
#pragma once

#include <span>
#include <string_view>

#include "codec/slices/slice_bits.h"

namespace sluice::codec {

struct QuantiserVariant {
  std::string_view name, what;
  // Replaces the weights of one group by their rounded values; out.size() == weights.size(). Scales are
  // binary16.
  void (*apply)(std::span<const double> weights, SliceBits bits, std::span<double> out);
};

std::span<const QuantiserVariant> quantiser_variants();
// Error(kUsage) that lists the names.
const QuantiserVariant& find_quantiser_variant(std::string_view name);

}  // namespace sluice::codec
