#include "kernels/packed_matmul.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/kernel_table.h"
#include "kernels/matmul.h"
#include "kernels/split.h"

namespace sluice::kernels {
namespace {

using codec::kTileRows;

// Of one thread.
struct Room {
  std::vector<std::byte> words, scratch;
};
Room& room(const codec::TileShape& shape) {
  thread_local Room mine;
  const std::size_t words = kTileRows * 2 * shape.columns + 64,
                    scratch = codec::native_scratch_bytes(shape.blocks());
  if (mine.words.size() < words) mine.words.resize(words);
  if (mine.scratch.size() < scratch) mine.scratch.resize(scratch);
  return mine;
}

// Rows of a matrix as words, in order.
class Unpacker {
 public:
  Unpacker(const PackedWeight& w, Isa isa, std::byte* scratch)
      : w_(w), kernels_(codec::native_kernels(isa)), scratch_(scratch) {}

  // Group `group` to `words`: its rows that are no padding. False if its chunk is damaged.
  bool unpack(std::uint64_t group, std::byte* words) {
    while (chunk_ == nullptr || group >= chunk_->first_group + chunk_->groups) next_chunk(group);
    const std::uint64_t at = group - chunk_->first_group, places = w_.shape.group_places();
    const std::uint64_t rows = std::min<std::uint64_t>(kTileRows, w_.shape.rows - group * kTileRows);
    const std::byte* const plane = w_.sign_mantissas + group * places;
    if (coded_)
      return kernels_.merge(coded_->group(at), scratch_, plane, rows, w_.shape.columns, words,
                            codec::Stores::kCached);
    kernels_.merge_raw(chunk_->bytes.data() + at * places, plane, w_.shape.blocks(), rows, w_.shape.columns,
                       words, codec::Stores::kCached);
    return true;
  }

  // Asks for the bytes of a group ahead of unpack(): the memory works while the group before is computed
  // with.
  void prefetch(std::uint64_t group) const {
    const std::uint64_t places = w_.shape.group_places();
    if (group * places >= w_.shape.places()) return;
    ahead(w_.sign_mantissas + group * places, places);
    if (chunk_ == nullptr || group < chunk_->first_group || group >= chunk_->first_group + chunk_->groups)
      return;
    const std::uint64_t at = group - chunk_->first_group;
    if (!coded_) return ahead(chunk_->bytes.data() + at * places, places);
    const codec::NativeGroup g = coded_->group(at);
    ahead(g.tier1, 2 * places / 8);
    ahead(g.tier2, static_cast<std::uint64_t>(g.literals - g.tier2) + g.literal_count);
  }

 private:
  static void ahead(const std::byte* bytes, std::uint64_t count) {
    for (std::uint64_t at = 0; at < count; at += 64) __builtin_prefetch(bytes + at, 0, 2);
  }
  void next_chunk(std::uint64_t group) {
    const auto found = std::ranges::find_if(
        w_.chunks, [&](const PackedChunk& chunk) { return group < chunk.first_group + chunk.groups; });
    SLUICE_CHECK(found != w_.chunks.end() && group >= found->first_group, std::to_string(group));
    chunk_ = &*found;
    coded_.reset();
    if (chunk_->coded) {
      coded_.emplace(chunk_->bytes, codec::GroupRange{chunk_->groups, w_.shape.blocks()});
    } else {
      SLUICE_CHECK(chunk_->bytes.size() == chunk_->groups * w_.shape.group_places());
    }
  }

  const PackedWeight& w_;
  const codec::NativeKernels& kernels_;
  std::byte* const scratch_;
  const PackedChunk* chunk_ = nullptr;
  std::optional<codec::NativeChunk> coded_;
};

}  // namespace

void packed_matmul(const Context& ctx, const float* packed, std::size_t tokens, const PackedWeight& w,
                   std::span<const float> bias, float* y, std::size_t y_stride) {
  const std::size_t rows = w.shape.rows, columns = w.shape.columns;
  SLUICE_CHECK(bias.empty() || bias.size() == rows, std::to_string(bias.size()));
  SLUICE_CHECK(y_stride >= rows || tokens <= 1, std::to_string(y_stride));
  if (tokens == 0 || rows == 0) return;
  const auto multiply = kernel_table(ctx.isa).matmul.rows;
  std::atomic<bool> damaged = false;
  split(ctx, rows, kTileRows, tokens * rows * columns, [&](std::size_t begin, std::size_t end) {
    Room& mine = room(w.shape);
    std::byte* const words = mine.words.data() + (-reinterpret_cast<std::uintptr_t>(mine.words.data()) & 63);
    Unpacker unpacker(w, ctx.isa, mine.scratch.data());
    MatmulArgs args{};
    args.packed = packed;
    args.packed_stride = packed_floats(columns);
    args.tokens = tokens;
    args.weights = words;
    args.row_bytes = 2 * columns;
    args.dtype = DType::kBF16;
    args.cols = columns;
    args.y_stride = y_stride;
    for (std::size_t row = begin; row < end; row += kTileRows) {
      unpacker.prefetch(row / kTileRows + 1);
      if (!unpacker.unpack(row / kTileRows, words)) damaged = true;
      args.bias = bias.empty() ? nullptr : bias.data() + row;
      args.y = y + row;
      multiply(args, 0, std::min(kTileRows, end - row));
    }
  });
  if (damaged)
    throw Error(ErrorKind::kCorrupt, "exponents of a resident expert are no valid encoding by native")
        .fix("check the store with `sluice verify`, and the machine's memory");
}

}  // namespace sluice::kernels
