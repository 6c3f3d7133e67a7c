#include "store/source/gguf_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <variant>

#include "base/shown_text.h"

namespace sluice::store {
namespace {

constexpr std::uint64_t kMostInteger = std::uint64_t{1} << 53;
constexpr std::string_view kAnotherFile = "download the file again, or one that another program has made";

template <class Value>
constexpr bool is_list = false;
template <class Entry>
constexpr bool is_list<std::vector<Entry>> = true;

// What the value is, for messages.
std::string found_text(const GgufValue& value) {
  return std::visit(
      [](const auto& one) -> std::string {
        using Value = std::decay_t<decltype(one)>;
        if constexpr (is_list<Value>)
          return fmt::format("{} entries", one.size());
        else if constexpr (std::is_same_v<Value, std::string>)
          return '"' + shown_text(one.substr(0, 80)) + '"';
        else
          return fmt::format("{}", one);
      },
      value);
}

// The number itself, or the one that all entries of a list are. Empty for another type.
template <class Number>
std::optional<Number> one_number(const GgufValue& value) {
  return std::visit(
      [](const auto& one) -> std::optional<Number> {
        using Value = std::decay_t<decltype(one)>;
        if constexpr (std::is_same_v<Value, std::string> || std::is_same_v<Value, std::vector<std::string>>) {
          return std::nullopt;
        } else if constexpr (is_list<Value>) {
          if (one.empty() || !std::ranges::all_of(one, [&](auto entry) { return entry == one.front(); }))
            return std::nullopt;
          return static_cast<Number>(one.front());
        } else {
          return static_cast<Number>(one);
        }
      },
      value);
}

bool holds_reals(const GgufValue& value) {
  return std::holds_alternative<double>(value) || std::holds_alternative<std::vector<double>>(value);
}
bool holds_booleans(const GgufValue& value) {
  return std::holds_alternative<bool>(value) || std::holds_alternative<std::vector<bool>>(value);
}

}  // namespace

Error GgufKeys::fail(std::string_view key, std::string_view message, std::string_view expected,
                     std::string_view found) const {
  return Error(ErrorKind::kInvalid, message)
      .in(fmt::format("{}: {}", file_, key))
      .expected(expected)
      .found(found)
      .fix(kAnotherFile);
}

std::optional<std::uint64_t> GgufKeys::integer(std::string_view key) const {
  const GgufValue* const value = header_.find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<double> number = one_number<double>(*value);
  if (!number || holds_reals(*value) || holds_booleans(*value) || *number < 0 ||
      *number > static_cast<double>(kMostInteger))
    throw fail(key, "a key has another value than it may", "a whole number, the same for every layer",
               found_text(*value));
  return static_cast<std::uint64_t>(*number);
}

std::optional<double> GgufKeys::real(std::string_view key) const {
  const GgufValue* const value = header_.find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<double> number = one_number<double>(*value);
  if (!number || holds_booleans(*value) || !std::isfinite(*number))
    throw fail(key, "a key has another value than it may", "a number, the same for every layer",
               found_text(*value));
  return number;
}

std::optional<bool> GgufKeys::boolean(std::string_view key) const {
  const GgufValue* const value = header_.find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* const flag = std::get_if<bool>(value)) return *flag;
  throw fail(key, "a key has another value than it may", "true or false", found_text(*value));
}

std::optional<std::string> GgufKeys::string(std::string_view key) const {
  const GgufValue* const value = header_.find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* const text = std::get_if<std::string>(value)) return *text;
  throw fail(key, "a key has another value than it may", "text", found_text(*value));
}

std::uint64_t GgufKeys::required_integer(std::string_view key) const {
  if (const std::optional<std::uint64_t> number = integer(key)) return *number;
  throw fail(key, "a key is missing", "a whole number", "nothing");
}

std::string GgufKeys::required_string(std::string_view key) const {
  if (std::optional<std::string> text = string(key)) return *std::move(text);
  throw fail(key, "a key is missing", "text", "nothing");
}

}  // namespace sluice::store
