// A Hugging Face directory as a Checkpoint: every piece is raw, at its place in the safetensors files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "store/checkpoint.h"

namespace sluice::store {

// Reads headers only. Ignores other weight formats beside the chosen safetensors set, and files that match
// `exclude` (scan_directory).
std::unique_ptr<Checkpoint> open_directory(const std::string& path,
                                           const std::vector<std::string>& exclude = {});

}  // namespace sluice::store
