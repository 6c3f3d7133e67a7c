// The types of tensors in GGUF files, by their numbers. docs/formats.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/dtype.h"
#include "codec/matrix_format.h"

namespace sluice::store {

struct GgufType {
  std::uint32_t number = 0;
  std::string_view name;       // as GGUF spells it: "Q4_K"
  std::uint64_t elements = 1;  // elements of a block; a row is whole blocks
  Bytes bytes = 0;             // bytes of a block
  // How the numbers are found; null: this program does not compute with them.
  const codec::MatrixFormat* format = nullptr;
  std::optional<DType> words = {};  // the type of the elements, where they are words
};

// Null for a number that no file has, or has no more.
const GgufType* gguf_type(std::uint32_t number);

}  // namespace sluice::store
