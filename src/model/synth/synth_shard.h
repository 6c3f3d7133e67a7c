// Makes and writes one file of a synthetic checkpoint at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/machine/thread_pool.h"
#include "model/synth/synth_values.h"

namespace sluice::model {

// A tensor row after row. Threads make rows in any order.
struct SynthTensor {
  std::uint64_t rows = 0;
  Bytes row_bytes = 0;
  std::function<void(std::uint64_t row, std::byte* out)> fill_row;
};
// One as its values are stored; they are copied.
SynthTensor tensor_of(const SynthValues& values, std::uint64_t rows);

// Writes `head` (a multiple of 8 bytes) and then the tensors without gaps, past the page cache, in batches of
// about 16 MiB that all threads make while the batch before is written. On return everything is on disk.
// `on_progress` (bytes of tensors made) is called after each batch on the caller's thread and may throw to
// stop. Error(kIo).
void write_synth_shard(const std::string& path, std::string_view head, std::span<const SynthTensor> tensors,
                       ThreadPool& threads, const std::function<void(Bytes)>& on_progress);

}  // namespace sluice::model
