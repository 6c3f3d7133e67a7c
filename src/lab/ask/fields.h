// Reads fields that several functions of the lab share. Bad values are Error(kInvalid) that names the place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"

namespace sluice::lab {

// Times, sizes and costs are finite, and so small that their sums are also finite.
constexpr double kMostNumber = 1e100;
constexpr std::int64_t kMostInteger = 1'000'000'000;
constexpr std::int64_t kMostExperts = 1 << 16;  // in a layer: an expert's id has 16 bits

// `place` is a place in the line, e.g. "p[3]".
[[noreturn]] void fail_at(const JsonObject& line, const std::string& place, std::string_view expected,
                          const Json& found);

// The field, which must be an array.
const Json& array_of(const JsonObject& line, std::string_view key, std::string_view expected);
// `value` at `place` as a number, or as an integer, in [min, max].
double number_at(const JsonObject& line, const std::string& place, const Json& value, double min, double max);
std::int64_t integer_at(const JsonObject& line, const std::string& place, const Json& value, std::int64_t min,
                        std::int64_t max);
// The field as an array of such numbers.
std::vector<double> numbers(const JsonObject& line, std::string_view key, double min, double max);
std::vector<std::int64_t> integers(const JsonObject& line, std::string_view key, std::int64_t min,
                                   std::int64_t max);
// A required boolean.
bool boolean(const JsonObject& line, std::string_view key);

}  // namespace sluice::lab
