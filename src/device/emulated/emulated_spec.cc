#include "device/emulated/emulated_spec.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/unknown_name.h"

namespace sluice::device {
namespace {

constexpr std::string_view kName = "emulated";
constexpr double kMostThreads = 1024;

// A part of the spec, and what it was to be.
struct Part {
  std::string_view key, value, where;

  [[noreturn]] void refuse(std::string_view expected) const {
    throw Error(ErrorKind::kUsage, fmt::format("{} of the emulated device cannot be read", key))
        .in(where)
        .expected(expected)
        .found(fmt::format("\"{}\"", value))
        .fix(fmt::format("write {}={}", key, expected.substr(expected.rfind(' ') + 1)));
  }
};

// Slower devices would never end, and nobody could tell them from a program that hangs.
constexpr Bytes kLeastRate = 1000;   // a second
constexpr double kMostLatency = 10;  // seconds

// The number that `text` begins with, and what follows it; none if it does not begin with one.
struct Number {
  double value = 0;
  std::string_view unit;
};
std::optional<Number> number_of(std::string_view text) {
  Number number;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number.value);
  if (error != std::errc() || !std::isfinite(number.value)) return std::nullopt;
  number.unit = text.substr(static_cast<std::size_t>(end - text.data()));
  return number;
}

// Bytes a second; empty for what is no number of them above 0.
std::optional<Bytes> rate_of(std::string_view text, std::string_view where) {
  if (!text.ends_with("/s")) return std::nullopt;
  try {
    const Bytes bytes = parse_size(text.substr(0, text.size() - 2), where);
    return bytes > 0 ? std::optional(bytes) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<double> read_rate(const Part& part) {
  if (part.value == "inf") return std::nullopt;
  const std::optional<Bytes> bytes = rate_of(part.value, part.where);
  if (!bytes) part.refuse("bytes a second with a unit, or inf, such as 2GB/s");
  if (*bytes < kLeastRate) part.refuse("at least 1kB a second, such as 2GB/s");
  return static_cast<double>(*bytes);
}

double read_latency(const Part& part) {
  struct Unit {
    std::string_view name;
    double seconds;
  };
  constexpr std::array kUnits = {Unit{"ns", 1e-9}, Unit{"us", 1e-6}, Unit{"µs", 1e-6}, Unit{"ms", 1e-3},
                                 Unit{"s", 1}};
  const std::optional<Number> number = number_of(part.value);
  if (number && number->value >= 0)
    for (const Unit& unit : kUnits)
      if (unit.name == number->unit && number->value * unit.seconds <= kMostLatency)
        return number->value * unit.seconds;
  part.refuse("a time of at most 10s with a unit such as 20us");
}

double read_number(const Part& part, double least, double most, std::string_view expected) {
  const std::optional<Number> number = number_of(part.value);
  if (!number || !number->unit.empty() || number->value < least || number->value > most)
    part.refuse(expected);
  return number->value;
}

void read_part(const Part& part, EmulatedSpec& spec) {
  if (part.key == "link") {
    spec.link_bytes_per_s = read_rate(part);
  } else if (part.key == "latency") {
    spec.latency_s = read_latency(part);
  } else if (part.key == "compute") {
    spec.compute_bytes_per_s = read_rate(part);
  } else if (part.key == "host") {
    spec.host_bytes_per_s = read_rate(part);
  } else if (part.key == "threads") {
    constexpr std::string_view kExpected = "a whole number from 1 to 1024 such as 1";
    const double threads = read_number(part, 1, kMostThreads, kExpected);
    if (threads != std::floor(threads)) part.refuse(kExpected);
    spec.threads = static_cast<unsigned>(threads);
  } else if (part.key == "dilate") {
    spec.dilation = read_number(part, 1e-3, 1e6, "a factor from 0.001 to 1000000 such as 4");
  } else if (part.key == "duplex") {
    if (part.value != "full" && part.value != "half") part.refuse("half or full");
    spec.full_duplex = part.value == "full";
  } else {
    throw unknown_name(part.where, part.key,
                       {"link", "latency", "compute", "host", "threads", "dilate", "duplex"},
                       "the emulated device has no such property", "leave it out");
  }
}

std::string rate_text(const std::optional<double>& rate) {
  return rate ? fmt::format("{:.0f}B/s", *rate) : "inf";
}

}  // namespace

EmulatedSpec parse_emulated_spec(std::string_view text, std::string_view where) {
  EmulatedSpec spec;
  constexpr std::string_view kExpected = "emulated or emulated:KEY=VALUE,…",
                             kExample =
                                 "write for example emulated:link=2GB/s,latency=20us, or none for the host "
                                 "alone";
  const auto fail = [&](std::string_view message, std::string_view found) {
    return Error(ErrorKind::kUsage, message)
        .in(where)
        .expected(kExpected)
        .found(fmt::format("\"{}\"", found))
        .fix(kExample);
  };
  if (text == kName) return spec;
  if (!text.starts_with(kName) || text.substr(kName.size(), 1) != ":")
    throw unknown_name(where, text.substr(0, text.find(':')), {std::string(kName)},
                       "no such device can compute", kExample)
        .expected(kExpected)
        .found(fmt::format("\"{}\"", text));
  std::string_view rest = text.substr(kName.size() + 1);
  std::string seen = ",";
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    more = comma != rest.npos;
    if (more) rest.remove_prefix(comma + 1);
    if (word.empty()) throw fail("a comma or colon of the emulated device has no property behind it", text);
    const std::size_t equals = word.find('=');
    if (equals == word.npos) throw fail("a property of the emulated device has no value", word);
    const Part part{word.substr(0, equals), word.substr(equals + 1), where};
    const std::string key = fmt::format("{},", part.key);
    if (seen.find("," + key) != seen.npos)
      throw fail("a property of the emulated device is given twice", word);
    seen += key;
    read_part(part, spec);
  }
  return spec;
}

double parse_link_rate(std::string_view text, std::string_view where) {
  const std::optional<Bytes> bytes = rate_of(text, where);
  if (bytes && *bytes >= kLeastRate) return static_cast<double>(*bytes);
  throw Error(ErrorKind::kUsage, "this is no rate of a link")
      .in(where)
      .expected("at least 1kB a second with a unit, such as 25GB/s")
      .found(fmt::format("\"{}\"", text));
}

std::string to_text(const EmulatedSpec& spec) {
  return fmt::format("{}:link={},latency={}s,compute={},host={},threads={},dilate={},duplex={}", kName,
                     rate_text(spec.link_bytes_per_s), spec.latency_s, rate_text(spec.compute_bytes_per_s),
                     rate_text(spec.host_bytes_per_s), spec.threads, spec.dilation,
                     spec.full_duplex ? "full" : "half");
}

}  // namespace sluice::device
