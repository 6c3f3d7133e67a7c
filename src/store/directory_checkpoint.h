// A Hugging Face directory as a Checkpoint: every piece raw, where the safetensors files have it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "store/checkpoint.h"

namespace sluice::store {

// Reads headers only. Other weight formats beside the chosen safetensors set are ignored; files that match
// `exclude` (scan_directory) are as good as not there.
std::unique_ptr<Checkpoint> open_directory(const std::string& path,
                                           const std::vector<std::string>& exclude = {});

}  // namespace sluice::store
