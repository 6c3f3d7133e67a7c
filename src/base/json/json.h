// JSON from files we do not trust: bounded size and depth, errors with file, byte and field; and typed
// getters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/json/json_value.h"

namespace sluice {

struct JsonLimits {
  Bytes max_bytes = 64 * kMiB;
  std::size_t max_depth = 64;
};

// Error(kInvalid) naming `name` and the byte offset: syntax errors, invalid UTF-8, duplicate keys, too deep,
// trailing bytes.
Json parse_json(std::string_view text, const std::string& name, const JsonLimits& limits = {});
Json read_json_file(const std::string& path, const JsonLimits& limits = {});
std::string json_library_version();  // "3.11.2", of the library that reads and writes the text

// One object of a JSON file; every getter names file and field ("config.json: hidden_size") in its error.
// Integers must be integers in range (1e3, 1.0 and "1" are not), reals must be finite.
class JsonObject {
 public:
  JsonObject(const Json& value,
             std::string name);          // Error(kInvalid) if not an object; `value` must outlive this
  bool has(std::string_view key) const;  // present and not null
  std::int64_t integer(std::string_view key, std::int64_t min, std::int64_t max) const;
  std::int64_t integer_or(std::string_view key, std::int64_t fallback, std::int64_t min,
                          std::int64_t max) const;
  double real(std::string_view key, double min, double max) const;
  double real_or(std::string_view key, double fallback, double min, double max) const;
  bool boolean_or(std::string_view key, bool fallback) const;
  std::string string(std::string_view key) const;
  std::string string_or(std::string_view key, std::string_view fallback) const;
  // An array of integers, or one integer alone (as "eos_token_id" is written in both ways).
  std::vector<std::int64_t> integers_or(std::string_view key, std::vector<std::int64_t> fallback,
                                        std::int64_t min, std::int64_t max) const;
  JsonObject object(std::string_view key) const;  // its fields are named "config.json: rope_scaling.factor"
  const Json& value() const { return *value_; }
  const Json* find(std::string_view key) const;  // null if absent or JSON null
  const std::string& name() const { return name_; }
  [[noreturn]] void fail(std::string_view key, std::string_view expected) const;

 private:
  std::string field_name(std::string_view key) const;

  const Json* value_;
  std::string name_;
  bool nested_ = false;  // made by object(): fields are joined to the name by a dot
};

}  // namespace sluice
