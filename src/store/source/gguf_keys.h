// The keys of a GGUF file by type. Writers give numbers of one meaning in different widths, and a number for
// each layer where another has one number; both are read. Every error names the file and the key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "store/source/gguf.h"

namespace sluice::store {

class GgufKeys {
 public:
  // `file` names it in errors. `header` must outlive this.
  GgufKeys(const GgufHeader& header, std::string file) : header_(header), file_(std::move(file)) {}

  bool has(std::string_view key) const { return header_.find(key) != nullptr; }
  // Empty where the key is absent. Error(kInvalid) for another type, for a number that is negative or more
  // than 2^53, and for numbers of layers that differ.
  std::optional<std::uint64_t> integer(std::string_view key) const;
  std::optional<double> real(std::string_view key) const;  // also from a whole number
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string> string(std::string_view key) const;
  // Error(kInvalid) if the key is absent.
  std::uint64_t required_integer(std::string_view key) const;
  std::string required_string(std::string_view key) const;

  const std::string& file() const { return file_; }
  // An error about a key, without its way out.
  Error fail(std::string_view key, std::string_view message, std::string_view expected,
             std::string_view found) const;

 private:
  const GgufHeader& header_;
  std::string file_;
};

}  // namespace sluice::store
