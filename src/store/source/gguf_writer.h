// Writes the header of a GGUF file, version 3: keys, and which tensors follow and where. The caller writes
// the data, each tensor at its place, with zeros between them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "store/source/gguf_types.h"

namespace sluice::store {

// Integers and numbers are written in the widths that other programs expect: u32, i32 and f32.
using GgufWritten = std::variant<bool, std::uint32_t, float, std::string, std::vector<std::int32_t>,
                                 std::vector<float>, std::vector<std::string>>;

struct GgufPlannedTensor {
  std::string name;
  std::vector<std::uint64_t> shape;  // the last dimension lies in sequence: whole blocks of the type
  const GgufType* type = nullptr;
  Bytes length() const;
};

struct GgufPlan {
  std::vector<std::pair<std::string, GgufWritten>> keys;
  std::vector<GgufPlannedTensor> tensors;
};

struct GgufLayout {
  std::string header;          // all bytes before the data
  std::vector<Bytes> offsets;  // offsets of the tensors, from the start of the file
  Bytes file_bytes = 0;
};
// REQUIRES: names that differ, one to four dimensions, and lengths that fit in 63 bits.
GgufLayout lay_out_gguf(const GgufPlan& plan);

}  // namespace sluice::store
