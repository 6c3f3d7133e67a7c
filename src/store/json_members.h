// Reading what stands in a manifest again and again: objects with known members, arrays of a fixed length,
// places and checksums.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/hash.h"
#include "store/json_reader.h"
#include "store/manifest.h"

namespace sluice::store {

// Tracks which members of an object have been seen: each exactly once, and no others.
template <std::size_t N>
class JsonMembers {
 public:
  explicit JsonMembers(const std::array<std::string_view, N>& names) : names_(names) {}

  // Index of `key`.
  std::size_t take(JsonReader& json, const std::string& key) {
    const auto at = static_cast<std::size_t>(std::find(names_.begin(), names_.end(), key) - names_.begin());
    if (at == N) {
      throw Error(ErrorKind::kUnsupported,
                  "the manifest has a member that this version of Sluice does not know")
          .in(json.error("").where(), json.value_offset())
          .expected(fmt::format("one of {}", fmt::join(names_, ", ")))
          .found(fmt::format("\"{}\"", key))
          .fix("use a newer version of Sluice");
    }
    if (seen_[at]) throw json.error(fmt::format("the manifest has \"{}\" twice", key));
    seen_[at] = true;
    return at;
  }
  bool has(std::size_t at) const { return seen_[at]; }
  // Checks that the first `count` members were seen.
  void need(JsonReader& json, std::size_t count = N) const {
    for (std::size_t at = 0; at < count; ++at) {
      if (!seen_[at]) throw json.error(fmt::format("the manifest lacks \"{}\" here", names_[at]));
    }
  }

 private:
  const std::array<std::string_view, N>& names_;
  std::array<bool, N> seen_{};
};

inline std::uint32_t read_u32(JsonReader& json) {
  const std::uint64_t value = json.read_number();
  if (value > std::numeric_limits<std::uint32_t>::max()) {
    throw json.error("a number is out of range").expected("less than 2^32").found(fmt::format("{}", value));
  }
  return static_cast<std::uint32_t>(value);
}

inline std::uint64_t read_xxh3(JsonReader& json) {
  const std::string text = json.read_string();
  std::uint64_t value = 0;
  if (!parse_hex64(text, value)) {
    throw json.error("not a checksum")
        .expected("16 lower-case hexadecimal digits")
        .found(fmt::format("\"{}\"", text));
  }
  return value;
}

// The elements of an array with a fixed number of them.
class JsonTuple {
 public:
  explicit JsonTuple(JsonReader& json) : json_(json) { json_.begin_array(); }
  JsonReader& next() {
    if (!json_.next_item()) throw json_.error("an array is too short");
    return json_;
  }
  void end() {
    if (json_.next_item()) throw json_.error("an array is too long");
  }

 private:
  JsonReader& json_;
};

inline Region read_region(JsonReader& json) {
  JsonTuple tuple(json);
  Region region;
  region.offset = tuple.next().read_number();
  region.length = tuple.next().read_number();
  tuple.end();
  return region;
}

inline Region read_checked_region(JsonReader& json, std::uint64_t& xxh3) {
  JsonTuple tuple(json);
  Region region;
  region.offset = tuple.next().read_number();
  region.length = tuple.next().read_number();
  xxh3 = read_xxh3(tuple.next());
  tuple.end();
  return region;
}

}  // namespace sluice::store
