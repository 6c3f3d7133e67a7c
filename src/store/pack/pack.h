// Makes a packed store (docs/store-format.md) from a model directory or a GGUF file.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/machine/cpu.h"
#include "store/checkpoint.h"
#include "store/format.h"
#include "store/memory_check.h"

namespace sluice::store {

// One routed expert: its matrices in the order gate, up, down (up and down where the architecture has two).
struct ExpertPlan {
  std::uint32_t layer = 0;  // sparse layers, from 0
  std::uint32_t index = 0;
  std::vector<Piece> pieces;
};

// Describes the model to the store. Every tensor range outside the experts is dense.
struct PackPlan {
  std::string architecture;  // model_type
  std::vector<ExpertPlan> experts;
  // Ranges of dense tensors that are read and checked separately: each is stored unchanged as a piece of its
  // own. The rest of such a tensor is stored like any other.
  std::vector<Piece> ranges{};
  // Tensors that are never rounded, whatever DenseRounding says: routers, because they decide which experts
  // run.
  std::vector<std::string> exact{};
};

// How weights outside the experts are stored.
enum class DenseRounding : std::uint8_t {
  kExact,  // unchanged, or compressed by the codec
  kInt8,   // large matrices in codes of 8 bits (docs/store-format.md, section 4.3): rounded
};

struct PackProgress {
  Bytes done = 0;  // bytes of the source, earlier runs included
  Bytes total = 0;
};

struct PackOptions {
  std::string codec = "native";
  std::optional<int> level;  // default: the codec's
  // Experts in two slices of quantised codes: family `sliced`, which cannot be unpacked. The codec then
  // compresses only dense weights.
  std::optional<codec::SliceBits> slices;
  DenseRounding dense = DenseRounding::kExact;  // kInt8 only with slices
  unsigned chunks = 4;                          // exponent chunks of an expert's matrix, 1 to 256
  std::vector<std::string> exclude;             // globs, see scan_directory; none for a GGUF file
  unsigned threads = 0;                         // threads that compress; 0: one for every CPU
  Isa isa = best_isa();                         // for splitting words
  // The pieces in the pipeline take at most this. What the threads code with may take as much again; where
  // that would not fit, fewer threads run. A single chunk may take more, unless check_memory refuses it.
  Bytes memory = 512 * kMiB;
  MemoryCheck check_memory{};
  // A new expert file begins when the current one has reached this size.
  Bytes expert_file_bytes = 4 * kGiB;
  // Tests with small models set these two. keep_columns: matrices in tiles keep their columns, whatever the
  // padding. least_split_dense: the smallest dense piece that is not stored raw.
  bool keep_columns = false;
  Bytes least_split_dense = kMinSplitDenseBytes;
  // The pack makes its work durable whenever this many bytes, or this much time, have passed since the last
  // time, and when interrupted() says so.
  Bytes journal_bytes = 256 * kMiB;
  std::chrono::milliseconds journal_time{2000};
  // Called on the thread that called pack(), once the store is whole except for its name: writes the sidecars
  // (store/sidecar/sidecar.h) into `directory`, so that they appear with it. An exception leaves the
  // partial store; the next run calls the function again.
  std::function<void(const std::string& directory)> add_sidecars{};
  // Both are called on the thread that called pack(), the second at least every 50 ms or so.
  std::function<void(const PackProgress&)> on_progress{};
  std::function<bool()> interrupted{};
};

struct PackResult {
  Family family = Family::kRaw;
  std::string codec;        // "none" also where a codec would compress nothing of a model in blocks
  Bytes source_bytes = 0;   // all files
  Bytes stored_bytes = 0;   // all files, manifest included
  Bytes resumed_bytes = 0;  // bytes of the source taken over from an interrupted run
  std::uint64_t experts = 0;
  std::uint64_t tensors = 0;
};

// Packs `source`, a directory or the first file of a GGUF model, into `target`, which must not exist; its
// parent must. Until it is done the store is called `target`.partial; when a partial store of the same source
// and options exists, packing continues where it was interrupted. The bytes do not depend on threads, memory
// or interruptions. Matrices in formats of their own are stored as they are.
//
// Errors leave the partial store, so that packing can resume: (kIo) for a full disk and the like,
// (kInterrupted) when interrupted() says so. (kInvalid): the target exists, another pack works on it, the
// source has changed since, the options differ from those of the partial store, or the plan does not fit the
// source. (kCorrupt): another program has cut or removed files of the partial store. (kUsage),
// (kUnsupported): codec, level or chunks; experts that cannot be sliced; what read_source() refuses.
PackResult pack(const std::string& source, const std::string& target, const PackPlan& plan,
                const PackOptions& options);

}  // namespace sluice::store
