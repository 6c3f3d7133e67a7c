// What a model is packed from: a directory with safetensors files, or a GGUF file with all its parts.
#pragma once

#include <string>
#include <vector>

#include "store/source/source_directory.h"
#include "store/source/weight_files.h"

namespace sluice::store {

struct SourceWeights {
  SourceDirectory directory;  // the files that are kept: everything below it; of a GGUF model its parts alone
  Weights weights;            // the tensors of the files, as these store them
  ReadTensors tensors;        // the same as readers have them
  bool gguf = false;
};

// Reads headers only. `exclude` leaves files of a directory out (scan_directory). Error as scan_directory(),
// select_weights() with a second copy of the weights refused, and read_weights(); or as open_gguf() and
// check_no_patterns(), and (kInvalid) for a GGUF file with a name that no store can have.
SourceWeights read_source(const std::string& path, const std::vector<std::string>& exclude);

// Error(kUsage) for patterns beside a GGUF file.
void check_no_patterns(const std::vector<std::string>& exclude);

// The files of the directory as they are now.
SourceDirectory list_again(const SourceWeights& source, const std::vector<std::string>& exclude);

}  // namespace sluice::store
