// The directory of a tiny golden model, laid out as published Hugging Face directories are.
#pragma once

#include <string>

namespace sluice::golden {

// Makes `directory`, which must not exist, from the committed `source`: its JSON files but weights.json, and
// the tensors that weights.json lists, in one model.safetensors or in the shards that
// model.safetensors.index.json names. Within a file, tensors stand as the safetensors library puts them:
// larger elements first, then by name. Error(kInvalid) if list and index name different tensors.
void write_checkpoint(const std::string& source, const std::string& directory);

}  // namespace sluice::golden
