// Memory that products need beside their operands, laid out once: nothing is allocated for a product.
#pragma once

#include <array>
#include <cstddef>

#include "base/bytes.h"
#include "kernels/context.h"

namespace sluice::kernels {

// The largest products that will be asked for.
struct ScratchShape {
  std::size_t tokens = 1;   // tokens of a product
  std::size_t columns = 0;  // columns of a matrix
  bool packed = false;      // some matrix is packed
  bool coded = false;       // some matrix is in codes of 8 bits (not in slices)
  bool words = true;        // some matrix has words …
  bool wide = false;        // … other than BF16
  bool decoded = false;     // rows of some matrix become fp32 words first (kDecodedProducts)
};

// What memory is for. Each room is used by one product at a time.
enum class Room {
  kTiles,    // the caller's: activations of a block of tokens, as tiles
  kWidened,  // the caller's: activations that were rounded, as floats again
  kCodes,    // the caller's: activations in codes of 8 bits
  kPanel,    // each thread's: rows of words, or rows that become fp32
  kSums,     // each thread's: outputs of a panel with padding rows
  kGroup,    // each thread's: a packed group on its way to words
  kOtherGroup,
};
inline constexpr std::size_t kRooms = 7;

// Tokens that are widened or coded at a time: what that needs of memory does not grow with a prompt.
inline constexpr std::size_t kTokensAtOnce = 128;

// Hands out the rooms of one engine. Non-owning; thread-safe, as threads have their own.
class Scratch {
 public:
  Scratch() = default;
  // `memory`: bytes(), on a cache line. The products are those of contexts with the same pool, instruction
  // set, rounding and form of activations as `ctx`.
  Scratch(const Context& ctx, const ScratchShape& shape, std::byte* memory);
  static Bytes bytes(const Context& ctx, const ScratchShape& shape);
  // A room of the calling thread, on a cache line; `bytes` of it may be used. Our own bug if there are fewer.
  std::byte* room(Room room, Bytes bytes) const;

 private:
  using Sizes = std::array<Bytes, kRooms>;
  static Sizes sizes(const Context& ctx, const ScratchShape& shape);

  std::byte* memory_ = nullptr;
  Sizes size_{}, begin_{};
  Bytes thread_bytes_ = 0;  // from one thread's rooms to the next's
  const ThreadPool* pool_ = nullptr;
};

// A room of the context's scratch. A context without one (tests, measurements of kernels, the self check) has
// memory of each thread's own, which no budget counts.
std::byte* scratch_room(const Context& ctx, Room room, Bytes bytes);

}  // namespace sluice::kernels
