// Statistics of the exponents of a checkpoint's BF16 experts: their entropy, and the sizes that codecs reach.
// SPEC §1.2.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/architecture.h"
#include "store/checkpoint.h"

namespace sluice::reproduce {

struct CodecSize {
  std::string codec;
  // Stored size of BF16 words (sign+mantissa plane and coded exponents) as a share of the words' own bytes.
  double size = 0;
};
struct ExponentFacts {
  std::uint64_t words = 0;  // words examined
  double entropy_bits = 0;  // per exponent
  unsigned symbols = 0;     // how many of 256 occur
  double bound = 0;         // (8 + entropy) / 16
  std::vector<CodecSize> codecs;
};

// Examines at most `experts` BF16 experts, evenly spaced, with each matrix in `chunks` chunks.
// Error(kUnsupported) without BF16 experts; Error(kIo), (kCorrupt), (kInterrupted).
ExponentFacts exponent_facts(const store::Checkpoint& checkpoint, const model::Model& model,
                             std::size_t experts, unsigned chunks,
                             const std::function<bool()>& interrupted = {});

}  // namespace sluice::reproduce
