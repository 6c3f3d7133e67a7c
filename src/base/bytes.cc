#include "base/bytes.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "base/error.h"

namespace sluice {
namespace {

struct Unit {
  std::string_view suffix;  // lower case
  Bytes bytes;
};

constexpr Bytes kTiB = 1024 * kGiB;
constexpr std::array kUnits = {
    Unit{"", 1},
    Unit{"b", 1},
    Unit{"k", kKiB},
    Unit{"kib", kKiB},
    Unit{"kb", 1000},
    Unit{"m", kMiB},
    Unit{"mib", kMiB},
    Unit{"mb", 1000 * 1000},
    Unit{"g", kGiB},
    Unit{"gib", kGiB},
    Unit{"gb", 1000 * 1000 * 1000},
    Unit{"t", kTiB},
    Unit{"tib", kTiB},
    Unit{"tb", 1000ull * 1000 * 1000 * 1000},
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

Bytes parse_size(std::string_view text, std::string_view flag) {
  const auto fail = [&](std::string_view message) -> Error {
    Error error(ErrorKind::kUsage, message);
    error.in(flag)
        .expected("a size such as 8GiB, 1.5G, 500MB or 4096")
        .found(fmt::format("\"{}\"", text))
        .fix("give a number and a unit");
    return error;
  };

  const auto too_large = [&] {
    return fail("size is too large").expected("less than 16 EiB").fix("give a smaller size");
  };

  // The number is kept as digits and a scale, so that 1.1GiB is exact down to the byte (rounded towards
  // zero).
  constexpr unsigned __int128 kLimit = std::numeric_limits<Bytes>::max();
  unsigned __int128 whole = 0;
  std::size_t at = 0;
  for (; at < text.size() && is_digit(text[at]); ++at) {
    whole = whole * 10 + static_cast<unsigned>(text[at] - '0');
    if (whole > kLimit) throw too_large();
  }
  const std::size_t whole_digits = at;
  unsigned __int128 fraction = 0, fraction_scale = 1;
  bool has_fraction = false;
  if (at < text.size() && text[at] == '.') {
    has_fraction = true;
    for (++at; at < text.size() && is_digit(text[at]); ++at) {
      if (fraction_scale >= 1'000'000'000'000'000'000u) continue;  // digits below 1e-18 of a unit
      fraction = fraction * 10 + static_cast<unsigned>(text[at] - '0');
      fraction_scale *= 10;
    }
    if (fraction_scale == 1) throw fail("not a size");  // "1." or "1.G"
  }
  if (whole_digits == 0) throw fail("not a size");

  std::string suffix(text.substr(at));
  for (char& c : suffix) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  for (const Unit& unit : kUnits) {
    if (unit.suffix != suffix) continue;
    if (has_fraction && unit.bytes == 1) throw fail("a fraction of a byte is not a size");
    const unsigned __int128 value = whole * unit.bytes + fraction * unit.bytes / fraction_scale;
    if (value > kLimit) throw too_large();
    return static_cast<Bytes>(value);
  }
  throw fail("not a size");
}

std::string format_bytes(Bytes bytes) {
  constexpr std::array<std::string_view, 6> kNames = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < kKiB) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024.0;
  std::size_t name = 0;
  while (value >= 1023.995 && name + 1 < kNames.size()) {  // 1023.995 would print as 1024.00
    value /= 1024.0;
    ++name;
  }
  return fmt::format("{:.2f} {}", value, kNames[name]);
}

}  // namespace sluice
