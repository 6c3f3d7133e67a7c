#include "flags/number_range.h"

#include <fmt/format.h>

#include <charconv>
#include <string>

#include "base/error.h"
#include "base/setting.h"

namespace sluice::app {

FlagCheck whole_number(Setting setting, std::uint64_t least, std::uint64_t most) {
  return [setting, least, most](const std::string& text) {
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [next, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc() && next == end && number >= least && number <= most) return;
    const bool whole = !text.empty() && text.find_first_not_of("0123456789", text[0] == '-') == text.npos;
    throw Error(ErrorKind::kUsage, whole ? "value out of range" : "not a whole number")
        .in(setting)
        .expected(fmt::format("a whole number from {} to {}", least, most))
        .found(fmt::format("\"{}\"", text))
        .fix("give such a number, or leave the flag out");
  };
}

std::size_t in_range(std::int64_t value, std::int64_t least, std::int64_t most, Setting setting) {
  if (value < least || value > most)
    throw Error(ErrorKind::kUsage, "value out of range")
        .in(setting)
        .expected(fmt::format("{} to {}", least, most))
        .found(std::to_string(value))
        .fix("give such a number");
  return static_cast<std::size_t>(value);
}

}  // namespace sluice::app
