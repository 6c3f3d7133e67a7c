#include "tokenizer/gguf/gguf_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace sluice::tokenizer {

void GgufKeys::fail(std::string_view message, std::string_view place, std::string_view expected,
                    std::string_view found) const {
  throw Error(ErrorKind::kInvalid, message).in(place).expected(expected).found(found).fix(kDownloadAgain);
}

std::string GgufKeys::place(std::string_view key) const { return fmt::format("{}: {}", single_.file(), key); }
std::string GgufKeys::place(std::string_view key, std::size_t entry) const {
  return fmt::format("{}: {}[{}]", single_.file(), key, entry);
}

template <class Value>
const Value* GgufKeys::of_type(std::string_view key, std::string_view expected) const {
  const store::GgufValue* const value = header_.find(key);
  if (value == nullptr) return nullptr;
  if (const auto* const typed = std::get_if<Value>(value)) return typed;
  fail("key has a value of a wrong type", place(key), expected, "another type");
}

const std::string* GgufKeys::string(std::string_view key) const {
  return of_type<std::string>(key, "a string");
}

const std::vector<std::string>* GgufKeys::strings(std::string_view key) const {
  return of_type<std::vector<std::string>>(key, "an array of strings");
}

std::optional<std::int64_t> GgufKeys::integer(std::string_view key, std::int64_t most) const {
  const std::optional<std::uint64_t> number = single_.integer(key);
  if (!number) return std::nullopt;
  if (*number > static_cast<std::uint64_t>(most))
    fail("number is out of range", place(key), fmt::format("0 to {}", most), fmt::format("{}", *number));
  return static_cast<std::int64_t>(*number);
}

std::vector<std::int64_t> GgufKeys::integers(std::string_view key) const {
  const store::GgufValue* const value = header_.find(key);
  if (value == nullptr || !std::holds_alternative<std::vector<std::uint64_t>>(*value)) {
    const auto* const plain = of_type<std::vector<std::int64_t>>(key, "an array of integers");
    return plain == nullptr ? std::vector<std::int64_t>() : *plain;
  }
  // Integers beyond 63 bits become the largest one, which is out of every range that is asked for.
  const auto& naturals = std::get<std::vector<std::uint64_t>>(*value);
  std::vector<std::int64_t> numbers(naturals.size());
  std::ranges::transform(naturals, numbers.begin(), [](std::uint64_t natural) {
    return static_cast<std::int64_t>(
        std::min<std::uint64_t>(natural, std::numeric_limits<std::int64_t>::max()));
  });
  return numbers;
}

std::vector<double> GgufKeys::numbers(std::string_view key) const {
  const store::GgufValue* const value = header_.find(key);
  if (value == nullptr) return {};
  if (const auto* const reals = std::get_if<std::vector<double>>(value)) return *reals;
  const std::vector<std::int64_t> plain = integers(key);
  return {plain.begin(), plain.end()};
}

}  // namespace sluice::tokenizer
