// Makes the source directory of a packed store again.
#pragma once

#include <functional>
#include <string>

#include "base/bytes.h"
#include "base/cpu.h"

namespace sluice::store {

struct UnpackOptions {
  unsigned threads = 0;       // that decode; 0: one for every CPU
  Isa isa = best_isa();       // that merges words
  Bytes memory = 512 * kMiB;  // of buffers
  // Both are called on the thread that called unpack().
  std::function<void(Bytes done, Bytes total)> on_progress{};
  std::function<bool()> interrupted{};
};

struct UnpackResult {
  std::uint64_t files = 0;
  Bytes bytes = 0;
};

// Every file of the source, byte for byte (each is compared with the SHA-256 that it had), and its empty
// directories, in `target`, which must not exist. It appears whole or not at all: until then it is called
// `target`.partial, and a failed or interrupted run removes that. Error(kCorrupt) naming file, offset,
// expected and found; (kInvalid), (kIo), (kInterrupted); (kUnsupported) for family sliced, whose experts were
// rounded.
UnpackResult unpack(const std::string& store, const std::string& target, const UnpackOptions& options);

}  // namespace sluice::store
