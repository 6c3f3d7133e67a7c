// One safetensors file of a synthetic checkpoint, made and written at the same time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/thread_pool.h"
#include "model/synth_values.h"

namespace sluice::model {

struct SynthTensor {
  SynthValues values;
  std::uint64_t rows = 0;
};

// Writes `head` (a multiple of 8 bytes) and then the tensors without gaps, in batches of about 16 MiB that
// are made on all threads while the batch before is written, past the page cache. All is on the disk on
// return. `on_progress` (bytes of tensors made) is called after each batch, by the caller's thread, and may
// throw to end it. Error(kIo).
void write_synth_shard(const std::string& path, std::string_view head, std::span<const SynthTensor> tensors,
                       ThreadPool& threads, const std::function<void(Bytes)>& on_progress);

}  // namespace sluice::model
