// The header of a GGUF file, version 2 or 3: keys with values, and which tensors the file holds and where.
//   "GGUF" | u32 version | u64 tensors | u64 keys | keys | tensors | zeros up to the alignment | data
// docs/formats.md has the fields. Files come from strangers: every number is checked before it is used.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/files/file.h"
#include "store/source/gguf_types.h"

namespace sluice::store {

// Ours, so that a header is read in bounded memory; those of published models are a tenth of it.
inline constexpr Bytes kGgufMostHeaderBytes = 128 * kMiB;
inline constexpr std::uint64_t kGgufMostEntries = 1 << 22;  // entries of an array
inline constexpr std::uint64_t kGgufMostTensors = 1 << 20, kGgufMostKeys = 1 << 16;

// Integers of any width are one of two kinds, and so are f32 and f64.
using GgufValue = std::variant<bool, std::int64_t, std::uint64_t, double, std::string, std::vector<bool>,
                               std::vector<std::int64_t>, std::vector<std::uint64_t>, std::vector<double>,
                               std::vector<std::string>>;

struct GgufKey {
  std::string name;
  GgufValue value;
};

struct GgufTensor {
  std::string name;
  std::vector<std::uint64_t> shape;  // as published models have it: the last dimension lies in sequence
  const GgufType* type = nullptr;
  Bytes offset = 0;  // from the start of the file
  Bytes length = 0;
};

struct GgufHeader {
  std::uint32_t version = 0;
  Bytes alignment = 32;
  Bytes data = 0;             // where the data starts
  std::vector<GgufKey> keys;  // in the order of the file
  std::vector<GgufTensor>
      tensors;  // likewise; their data lies in this order, without other gaps than padding
  const GgufValue* find(std::string_view key) const;  // null: there is none
};

// Whether the file begins as GGUF files do. False for what cannot be read.
bool looks_like_gguf(const std::string& path);

// Error(kInvalid), or (kUnsupported) for a version or type that this program does not know, with the byte,
// what was expected and what was found.
GgufHeader read_gguf(const InputFile& file);

// The same of a GGUF file whose head lies elsewhere: `head_bytes` of `file` from `offset` on are its first.
struct GgufHead {
  const InputFile& file;
  Bytes offset = 0, head_bytes = 0;
  std::string path;      // the path of the GGUF file, for errors
  Bytes file_bytes = 0;  // its size
};
GgufHeader read_gguf(const GgufHead& head);

}  // namespace sluice::store
