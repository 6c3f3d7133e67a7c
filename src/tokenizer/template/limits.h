// How much a template may cost. Templates come with models, which nobody has read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace sluice::tokenizer {

struct TemplateLimits {
  Bytes source_bytes = kMiB;
  std::size_t nesting = 64;         // expressions and blocks in the source, and values in values
  std::uint64_t steps = 1'000'000;  // expressions and statements evaluated, and elements visited
  std::size_t calls = 64;           // macros that call each other
  Bytes output_bytes = 16 * kMiB;
  Bytes value_bytes = 16 * kMiB;    // any one string, list or dictionary
  Bytes memory_bytes = 256 * kMiB;  // all values that are alive together
  double seconds = 1.0;             // the thread's time on a processor
  std::size_t range_items = 100'000;
};

}  // namespace sluice::tokenizer
