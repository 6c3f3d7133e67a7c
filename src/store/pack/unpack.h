// Rebuilds the source directory of a packed store.
#pragma once

#include <functional>
#include <string>

#include "base/bytes.h"
#include "base/machine/cpu.h"
#include "store/memory_check.h"

namespace sluice::store {

struct UnpackOptions {
  unsigned threads = 0;       // threads that decode; 0: one for every CPU
  Isa isa = best_isa();       // for merging words
  Bytes memory = 512 * kMiB;  // for buffers; least_restore_memory() is taken unless check_memory refuses it
  MemoryCheck check_memory{};
  // Both are called on the thread that called unpack().
  std::function<void(Bytes done, Bytes total)> on_progress{};
  std::function<bool()> interrupted{};
};

struct UnpackResult {
  std::uint64_t files = 0;
  Bytes bytes = 0;
};

// Restores every file of the source, byte for byte (each is compared with its SHA-256), and its empty
// directories, in `target`, which must not exist. `target` appears whole or not at all: until then the
// directory is called `target`.partial, and a failed or interrupted run removes it. Error(kCorrupt) naming
// file, offset, expected and found; (kInvalid), (kIo), (kInterrupted); (kUnsupported) for family sliced,
// whose experts were rounded.
UnpackResult unpack(const std::string& store, const std::string& target, const UnpackOptions& options);

}  // namespace sluice::store
