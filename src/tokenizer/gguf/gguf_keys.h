// The keys of a GGUF file that hold a tokenizer, by type. Every error names file and key, what was expected
// and what was found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/source/gguf_keys.h"

namespace sluice::tokenizer {

class GgufKeys {
 public:
  // `header` must outlive this; `name` names the file in errors.
  GgufKeys(const store::GgufHeader& header, std::string name)
      : header_(header), single_(header, std::move(name)) {}

  bool has(std::string_view key) const { return single_.has(key); }
  // Null or nothing for an absent key.
  const std::string* string(std::string_view key) const;
  const std::vector<std::string>* strings(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const { return single_.boolean(key); }
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t most) const;  // from 0
  // Empty for an absent key, as for no entries.
  std::vector<std::int64_t> integers(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;

  const store::GgufHeader& header() const { return header_; }
  std::string place(std::string_view key) const;                     // "model.gguf: tokenizer.ggml.tokens"
  std::string place(std::string_view key, std::size_t entry) const;  // "model.gguf: tokenizer.ggml.tokens[5]"
  [[noreturn]] void fail(std::string_view message, std::string_view place, std::string_view expected,
                         std::string_view found) const;

 private:
  template <class Value>
  const Value* of_type(std::string_view key, std::string_view expected) const;

  const store::GgufHeader& header_;
  store::GgufKeys single_;
};

// What to do about a file with broken content.
inline constexpr std::string_view kDownloadAgain = "download the file again";

}  // namespace sluice::tokenizer
