// The header of one safetensors file: which tensors it holds and where. The format is
//   u64 little-endian header length N | N bytes of JSON, first byte '{', padded with blanks | data
// and the JSON is {"NAME": {"dtype": "BF16", "shape": [64, 2048], "data_offsets": [begin, end]}, …,
// "__metadata__": {"KEY": "TEXT"}} with offsets relative to the data.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/files/file.h"
#include "store/checkpoint.h"

namespace sluice::store {

// Same limit as the reference implementation
inline constexpr Bytes kSafetensorsMaxHeaderBytes = 100'000'000;

struct SafetensorsTensor {
  TensorInfo info;
  Bytes offset = 0;  // from the start of the file
  Bytes length = 0;
};

struct SafetensorsHeader {
  Bytes bytes = 0;  // 8 + N: where the data starts
  // Ascending by offset (then name): back to back from `bytes` to the end of the file.
  std::vector<SafetensorsTensor> tensors;
};

// The first 8 + N bytes of the file, verbatim. Error(kInvalid) if N is illegal for the file's size.
std::string read_safetensors_head(const InputFile& file);

// `head` is the result of read_safetensors_head (or any bytes: nothing beyond `head` is read). Checks
// everything: Error(kInvalid), or (kUnsupported) for an unknown element type, naming `path`, the byte, the
// tensor, what was expected and what was found.
SafetensorsHeader parse_safetensors(std::string_view head, Bytes file_bytes, const std::string& path);

SafetensorsHeader read_safetensors(const InputFile& file);

}  // namespace sluice::store
