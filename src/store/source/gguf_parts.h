// The files of a GGUF model. A large one is published in parts, NAME-00001-of-00003.gguf and so on: each is a
// GGUF file of its own, the first has the model's keys, and each its own tensors (docs/formats.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/source/gguf.h"

namespace sluice::store {

// A path of the form STEM-00002-of-00003.gguf.
struct GgufPartName {
  std::string stem;  // with its directory
  std::uint32_t number = 0, count = 0;
  std::string path_of(std::uint32_t part) const;  // the path of the part with that number, from 1 on
};
// Empty for a path of another form.
std::optional<GgufPartName> gguf_part_name(std::string_view path);

struct GgufPart {
  std::string path;
  Bytes size = 0;  // the file's
  GgufHeader header;
};

// Reads the headers of all parts; of a model in one file that alone. `path` is the file, or the first part.
// Error(kInvalid) if it is a later part, or if the parts are not those of one model; (kNotFound) if one is
// missing; and the errors of read_gguf().
std::vector<GgufPart> read_gguf_parts(const std::string& path);

}  // namespace sluice::store
