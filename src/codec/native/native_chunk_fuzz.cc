// Takes any bytes as a chunk of codec `native`; the two bytes before it say how many groups and blocks it
// should have. NativeChunk throws Error or accepts the chunk, and then every instruction set decodes every
// group alike. The same bytes, repeated, also serve as exponents of that many groups and blocks: every
// instruction set codes them to the same chunk, and decoding returns them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "codec/native/native_chunk.h"

namespace {

using namespace sluice;         // NOLINT
using namespace sluice::codec;  // NOLINT

void check_decoders(const NativeChunk& chunk) {
  const std::uint64_t blocks = chunk.range().blocks;
  const std::size_t places = blocks * kTilePlaces;
  std::vector<std::byte> scratch(native_scratch_bytes(blocks)), expected(places), found(places),
      words(2 * places);
  for (std::uint64_t index = 0; index < chunk.range().groups; ++index) {
    const NativeGroup group = chunk.group(index);
    const bool good = native_kernels(Isa::kScalar).decode(group, scratch.data(), expected.data());
    for (const Isa isa : available_isas()) {
      const NativeKernels& kernels = native_kernels(isa);
      if (kernels.decode(group, scratch.data(), found.data()) != good || (good && found != expected))
        std::abort();
      if (kernels.merge(group, scratch.data(), expected.data(), kTileRows, blocks * kTileColumns,
                        words.data(), Stores::kStreaming) != good)
        std::abort();
    }
  }
}

void check_encoders(std::span<const std::byte> bytes, GroupRange range) {
  std::vector<std::byte> exponents(range.places());
  for (std::size_t i = 0; i < exponents.size(); ++i) exponents[i] = bytes[i % bytes.size()];
  const TileShape shape{range.groups * kTileRows, range.blocks * kTileColumns};
  const std::vector<std::byte> encoded = encode_native(exponents, shape, Isa::kScalar);
  for (const Isa isa : available_isas())
    if (encode_native(exponents, shape, isa) != encoded) std::abort();
  if (encoded.empty()) return;
  const NativeChunk chunk(encoded, range);
  const std::size_t places = range.blocks * kTilePlaces;
  std::vector<std::byte> scratch(native_scratch_bytes(range.blocks)), found(places);
  for (std::uint64_t index = 0; index < range.groups; ++index) {
    if (!native_kernels(best_isa()).decode(chunk.group(index), scratch.data(), found.data())) std::abort();
    if (std::memcmp(found.data(), &exponents[index * places], places) != 0) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const GroupRange range{1u + data[0] % 8, 1u + data[1] % 8};
  const std::unique_ptr<std::byte[]> bytes(
      new std::byte[size - 2]);  // exact allocation: the sanitizer sees a byte too far
  std::memcpy(bytes.get(), data + 2, size - 2);
  const std::span<const std::byte> input(bytes.get(), size - 2);
  if (!input.empty()) check_encoders(input, range);
  std::optional<NativeChunk> chunk;
  try {
    chunk.emplace(input, range);
  } catch (const Error&) {
    return 0;
  }
  check_decoders(*chunk);
  return 0;
}
