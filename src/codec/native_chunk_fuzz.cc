// Any bytes as a chunk of codec `native`, behind two that say how many groups and blocks it should have:
// NativeChunk throws Error or takes it, and then every instruction set says the same of every group.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "codec/native_chunk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;
  using namespace sluice::codec;
  if (size < 2) return 0;
  const GroupRange range{1u + data[0] % 8, 1u + data[1] % 8};
  const std::unique_ptr<std::byte[]> bytes(
      new std::byte[size - 2]);  // exactly: the sanitizer sees a byte too far
  std::memcpy(bytes.get(), data + 2, size - 2);
  std::optional<NativeChunk> chunk;
  try {
    chunk.emplace(std::span<const std::byte>(bytes.get(), size - 2), range);
  } catch (const Error&) {
    return 0;
  }
  const std::size_t places = range.blocks * kTilePlaces;
  std::vector<std::byte> scratch(native_scratch_bytes(range.blocks)), expected(places), found(places),
      words(2 * places);
  for (std::uint64_t index = 0; index < range.groups; ++index) {
    const NativeGroup group = chunk->group(index);
    const bool good = native_kernels(Isa::kScalar).decode(group, scratch.data(), expected.data());
    for (const Isa isa : available_isas()) {
      const NativeKernels& kernels = native_kernels(isa);
      if (kernels.decode(group, scratch.data(), found.data()) != good || (good && found != expected))
        std::abort();
      if (kernels.merge(group, scratch.data(), expected.data(), kTileRows, range.blocks * kTileColumns,
                        words.data(), Stores::kStreaming) != good)
        std::abort();
    }
  }
  return 0;
}
