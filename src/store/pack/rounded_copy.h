// Makes a model directory whose experts are rounded as a quantiser would round them, for evaluation: it gives
// the perplexity of a row of SliceMoE's Table 1 (SPEC 6.4).
#pragma once

#include <functional>
#include <string>

#include "base/bytes.h"
#include "codec/slices/quantiser_variants.h"
#include "store/pack/pack.h"

namespace sluice::store {

struct RoundedCopyOptions {
  unsigned threads = 0;       // 0: one for every CPU
  Bytes memory = 256 * kMiB;  // for the rows in progress, a few MiB of an expert's matrix each
  // Both are called on the calling thread, interrupted() at least every 100 ms or so.
  std::function<void(const PackProgress&)> on_progress{};
  std::function<bool()> interrupted{};
};

// Copies the model directory `source` to `target`, which must not exist. Every weight of the plan's experts
// is replaced by its value after `variant`, in groups of 32 along the last dimension, in the tensor's own
// type: BF16 adds a rounding of its own, about 56 dB below the weights. All other bytes stay. The copy
// appears whole or not at all. Error(kInvalid) naming a weight that is infinite or NaN, (kUnsupported) for an
// expert of another type than BF16, F16 and F32, (kIo), (kInterrupted).
void write_rounded_copy(const std::string& source, const std::string& target, const PackPlan& plan,
                        const codec::QuantiserVariant& variant, codec::SliceBits bits,
                        const RoundedCopyOptions& options);

}  // namespace sluice::store
