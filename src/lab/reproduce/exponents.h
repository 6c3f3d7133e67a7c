// What a checkpoint's experts say about the exponents of BF16 words: their entropy, and what codecs make of
// them. SPEC §1.2.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/architecture.h"
#include "store/checkpoint.h"

namespace sluice::lab {

struct CodecSize {
  std::string codec;
  double size = 0;  // of BF16 words: sign+mantissa plane and coded exponents, by the words' own bytes
};
struct ExponentFacts {
  std::uint64_t words = 0;  // looked at
  double entropy_bits = 0;  // of an exponent
  unsigned symbols = 0;     // of 256 that occur
  double bound = 0;         // (8 + entropy) / 16
  std::vector<CodecSize> codecs;
};

// Of at most `experts` BF16 experts, evenly spaced, each matrix in `chunks` chunks. Error(kUnsupported) if
// there is none of BF16; Error(kIo), (kCorrupt), (kInterrupted).
ExponentFacts exponent_facts(const store::Checkpoint& checkpoint, const model::Model& model,
                             std::size_t experts, unsigned chunks,
                             const std::function<bool()>& interrupted = {});

}  // namespace sluice::lab
