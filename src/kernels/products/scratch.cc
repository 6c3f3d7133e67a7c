#include "kernels/products/scratch.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/machine/thread_pool.h"
#include "codec/matrix_format.h"
#include "codec/native/native_chunk.h"
#include "codec/native/tiles.h"
#include "kernels/products/codes/activation_codes.h"
#include "kernels/products/packed/tile_matmul.h"
#include "kernels/products/product_args.h"
#include "kernels/products/words/matmul.h"
#include "kernels/split.h"

namespace sluice::kernels {
namespace {

constexpr Bytes kLine = 64;
// Vectors whose products are made in one pass over the threads, and that differ.
constexpr std::size_t kCodedVectors = 4;

bool is_callers(Room room) { return room == Room::kTiles || room == Room::kWidened || room == Room::kCodes; }

}  // namespace

Scratch::Sizes Scratch::sizes(const Context& ctx, const ScratchShape& shape) {
  Sizes sizes{};
  const auto at = [&](Room room) -> Bytes& { return sizes[static_cast<std::size_t>(room)]; };
  const std::size_t some = std::min(shape.tokens, kTokensAtOnce);
  const bool coded = shape.coded && ctx.activations == ActivationForm::kInt8;
  if (ctx.rounds() && (shape.words || shape.packed)) {
    const TileScratch tiles = tile_scratch(ctx, shape.tokens, shape.columns);
    at(Room::kTiles) = tiles.tiles;
    at(Room::kPanel) = tiles.panel;
    at(Room::kSums) = tiles.sums;
  } else if (shape.packed) {
    at(Room::kPanel) = codec::kTileRows * codec::kFormatBf16.plane_bytes({1, shape.columns}, 0);
  }
  if (shape.decoded)
    at(Room::kPanel) =
        std::max(at(Room::kPanel), codec::kFormatF32.plane_bytes({kRowGrain, shape.columns}, 0));
  if (ctx.rounds() && (shape.wide || shape.coded))
    at(Room::kWidened) = (some + 1) * arranged_floats(shape.columns) * sizeof(float);
  if (coded)
    at(Room::kCodes) = std::max(some, kCodedVectors) * activation_code_floats(shape.columns) * sizeof(float);
  if (shape.packed) {
    at(Room::kGroup) = codec::native_scratch_bytes(codec::TileShape{1, shape.columns}.blocks());
    if (ctx.rounds()) at(Room::kOtherGroup) = at(Room::kGroup);
  }
  for (Bytes& size : sizes) size = round_up(size, kLine);
  return sizes;
}

Bytes Scratch::bytes(const Context& ctx, const ScratchShape& shape) {
  Bytes callers = 0, threads_own = 0;
  const Sizes all = sizes(ctx, shape);
  for (std::size_t i = 0; i < kRooms; ++i)
    (is_callers(static_cast<Room>(i)) ? callers : threads_own) += all[i];
  return callers + threads(ctx) * threads_own;
}

Scratch::Scratch(const Context& ctx, const ScratchShape& shape, std::byte* memory)
    : memory_(memory), size_(sizes(ctx, shape)), pool_(ctx.pool) {
  Bytes callers = 0;
  for (std::size_t i = 0; i < kRooms; ++i)
    if (is_callers(static_cast<Room>(i))) {
      begin_[i] = callers;
      callers += size_[i];
    }
  for (std::size_t i = 0; i < kRooms; ++i)
    if (!is_callers(static_cast<Room>(i))) {
      begin_[i] = callers + thread_bytes_;
      thread_bytes_ += size_[i];
    }
}

std::byte* Scratch::room(Room room, Bytes bytes) const {
  const auto i = static_cast<std::size_t>(room);
  SLUICE_CHECK(bytes <= size_[i], "room " + std::to_string(i) + ": " + std::to_string(bytes) + " of " +
                                      std::to_string(size_[i]));
  const unsigned thread = is_callers(room) || pool_ == nullptr ? 0 : pool_->worker();
  return memory_ + begin_[i] + thread * thread_bytes_;
}

std::byte* scratch_room(const Context& ctx, Room room, Bytes bytes) {
  if (ctx.scratch != nullptr) return ctx.scratch->room(room, bytes);
  // As large as the largest product that the thread has computed so; no engine comes here.
  thread_local std::array<std::vector<std::byte>, kRooms> own;
  std::vector<std::byte>& memory = own[static_cast<std::size_t>(room)];
  if (memory.size() < bytes + kLine) memory.resize(bytes + kLine);
  return memory.data() + (-reinterpret_cast<std::uintptr_t>(memory.data()) & (kLine - 1));
}

}  // namespace sluice::kernels
