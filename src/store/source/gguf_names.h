// Which GGUF models there are, told by the names of files alone. A large model is published in parts,
// NAME-00001-of-00003.gguf and so on, which are one model: the first is the one to name.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace sluice::store {

struct GgufNames {
  std::string first;               // the file to name, even if it is not there
  std::vector<std::string> files;  // those that are there, ascending
  std::size_t parts = 1;           // that the model has
  bool whole() const { return files.size() == parts; }
};

// The models, ascending by their first file. `names` are paths relative to one directory. What is no *.gguf
// file is left out, and so are projectors (mmproj), which belong to a model and are none.
std::vector<GgufNames> gguf_models(std::span<const std::string> names);

}  // namespace sluice::store
