// Makes a packed store (docs/store-format.md) of a model directory.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/cpu.h"
#include "store/checkpoint.h"
#include "store/format.h"

namespace sluice::store {

// One routed expert: its matrices in the order gate, up, down (two of them where the architecture has two).
struct ExpertPlan {
  std::uint32_t layer = 0;  // sparse layers, from 0
  std::uint32_t index = 0;
  std::vector<Piece> pieces;
};

// What the store is told about the model. Everything that is in no expert is dense.
struct PackPlan {
  std::string architecture;  // model_type
  std::vector<ExpertPlan> experts;
  // Ranges of dense tensors that are read and checked by themselves: stored as they are, each a piece. What
  // they leave of a tensor is stored as ever.
  std::vector<Piece> ranges{};
  // Tensors that are never rounded, whatever DenseWeights says: routers, which decide what is computed.
  std::vector<std::string> exact{};
};

// What becomes of weights that are in no expert.
enum class DenseWeights : std::uint8_t {
  kExact,  // as they are, or by the codec
  kInt8,   // large matrices in codes of 8 bits (docs/store-format.md, section 4.3): rounded
};

struct PackProgress {
  Bytes done = 0;  // of the source, earlier runs included
  Bytes total = 0;
};

struct PackOptions {
  std::string codec = "native";
  std::optional<int> level;  // default: the codec's
  // Experts in two slices of quantised codes: family `sliced`, which cannot be unpacked. The codec is then
  // for dense weights.
  std::optional<codec::SliceBits> slices;
  DenseWeights dense = DenseWeights::kExact;  // kInt8 only with slices
  unsigned chunks = 4;                        // exponent chunks of an expert's matrix, 1 to 256
  std::vector<std::string> exclude;           // globs, see scan_directory
  unsigned threads = 0;                       // that compress; 0: one for every CPU
  Isa isa = best_isa();                       // that splits words
  Bytes memory = 512 * kMiB;           // buffers of the pieces on their way; a single chunk may take more
  Bytes expert_file_bytes = 4 * kGiB;  // a new expert file is begun when one has reached this size
  // For tests with small models: matrices in tiles keep their columns, whatever the padding; and the least
  // dense piece that is not stored raw.
  bool keep_columns = false;
  Bytes least_split_dense = kMinSplitDenseBytes;
  // What is packed is kept for a later run once as many bytes, or as much time, have passed since the last
  // time; and when interrupted() says so.
  Bytes journal_bytes = 256 * kMiB;
  std::chrono::milliseconds journal_time{2000};
  // Called on the thread that called pack(), once the store is whole but for its name: its sidecars
  // (store/sidecar.h) are to be written into `directory`, and appear with it. What it throws leaves the
  // partial store; the next run calls it again.
  std::function<void(const std::string& directory)> add_sidecars{};
  // Both are called on the thread that called pack(), the second at least every 50 ms or so.
  std::function<void(const PackProgress&)> on_progress{};
  std::function<bool()> interrupted{};
};

struct PackResult {
  Bytes source_bytes = 0;   // all files
  Bytes stored_bytes = 0;   // all files, manifest included
  Bytes resumed_bytes = 0;  // of the source, taken over from an interrupted run
  std::uint64_t experts = 0;
  std::uint64_t tensors = 0;
};

// Packs the directory `source` into `target`, which must not exist; its parent must. While it works the store
// is called `target`.partial; when that exists and belongs to the same source and options, the work goes on
// where it was interrupted. The bytes do not depend on threads, memory or interruptions.
//
// Errors leave the partial store, to be resumed: (kIo) disk full and the like, (kInterrupted) when
// interrupted() says so. (kInvalid): the target exists, another pack works on it, the source has changed
// since, the options are not those of the partial store, or the plan does not fit the source; (kCorrupt):
// something else has cut or removed files of the partial store; (kUsage), (kUnsupported): codec, level or
// chunks; experts that cannot be sliced.
PackResult pack(const std::string& source, const std::string& target, const PackPlan& plan,
                const PackOptions& options);

}  // namespace sluice::store
