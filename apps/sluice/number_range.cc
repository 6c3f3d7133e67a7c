#include "number_range.h"

#include <fmt/format.h>

#include <charconv>
#include <string>

#include "base/error.h"

namespace sluice::app {

// The error leaves the parser as it is and ends in main(): CLI11 would put words of its own around it.
CLI::Validator whole_number(const char* flag, std::uint64_t least, std::uint64_t most) {
  const auto check = [flag, least, most](const std::string& text) {
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [next, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc() && next == end && number >= least && number <= most) return std::string();
    throw Error(ErrorKind::kUsage, "value out of range")
        .in(flag)
        .expected(fmt::format("a whole number from {} to {}", least, most))
        .found(fmt::format("\"{}\"", text))
        .fix("give such a number, or leave the flag out");
  };
  return CLI::Validator(check, "");
}

}  // namespace sluice::app
