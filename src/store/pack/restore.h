// Rebuilds the weight files of the source from a store, and checks every checksum on the way.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/machine/cpu.h"
#include "store/manifest.h"

namespace sluice::store {

// Called on the thread that called restore_weights: for each weight file in the order of the manifest, begin,
// any number of writes that make up the file, end.
class RestoreSink {
 public:
  virtual ~RestoreSink() = default;
  virtual void begin(const StoredSource& source) = 0;
  virtual void write(std::span<const std::byte> bytes) = 0;
  virtual void end(const StoredSource& source) = 0;
  virtual void poll() {}  // at least every 100 ms; may throw to stop
};

struct RestoreOptions {
  unsigned threads = 0;  // threads that decode; 0: one for every CPU
  Isa isa = best_isa();  // for merging words
  // For buffers in the pipeline. One run of words always passes: least_restore_memory().
  Bytes memory = 512 * kMiB;
};

// The most that one run of words takes: a few MiB, and the coded chunk; of a codec without groups the whole
// chunk as words.
Bytes least_restore_memory(const Manifest& manifest);

// Error(kCorrupt) naming file, offset, expected and found at the first mismatch. A part is compared with its
// checksum only after its last byte was handed out, so trust no byte before this function returns.
void restore_weights(const std::string& store, const Manifest& manifest, const RestoreOptions& options,
                     RestoreSink& sink);

}  // namespace sluice::store
