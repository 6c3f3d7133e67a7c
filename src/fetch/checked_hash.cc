#include "fetch/checked_hash.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"

namespace sluice::fetch {

void check_hash(std::span<const std::byte> data, std::uint64_t expected, const std::string& path,
                Bytes offset) {
  const std::uint64_t found = xxh3(data);
  if (found != expected) throw_hash_mismatch(data.size(), expected, found, path, offset);
}

void throw_hash_mismatch(Bytes bytes, std::uint64_t expected, std::uint64_t found, const std::string& path,
                         Bytes offset) {
  throw Error(ErrorKind::kCorrupt, fmt::format("checksum of {} bytes of weights does not match", bytes))
      .in(path, offset)
      .expected(hex64(expected))
      .found(hex64(found))
      .fix("run `sluice verify`, then pack the model again");
}

}  // namespace sluice::fetch
