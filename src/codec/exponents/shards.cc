#include "codec/exponents/shards.h"

#include <string>

#include "base/error.h"
#include "base/setting.h"

namespace sluice::codec {

ElementRange shard_range(std::uint64_t elements, unsigned chunks, unsigned chunk) {
  SLUICE_CHECK(chunks >= 1 && chunks <= kMaxChunks && chunk < chunks,
               std::to_string(chunk) + " of " + std::to_string(chunks));
  // 128 bits: the product of two numbers from a file must not wrap round.
  const auto bound = [&](unsigned x) {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(elements) * x / chunks);
  };
  return {bound(chunk), bound(chunk + 1)};
}

unsigned check_chunk_count(std::int64_t chunks, Setting setting) {
  if (chunks < 1 || chunks > static_cast<std::int64_t>(kMaxChunks)) {
    throw Error(ErrorKind::kUsage, "number of exponent chunks is out of range")
        .in(setting)
        .expected("1 to " + std::to_string(kMaxChunks))
        .found(std::to_string(chunks));
  }
  return static_cast<unsigned>(chunks);
}

}  // namespace sluice::codec
