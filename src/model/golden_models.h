// The tiny models of every architecture, and where tests find them and their goldens. For tests alone:
// programs that link `golden_models` of tests/golden_writer.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json/json.h"

namespace sluice::testing {

// The build writes NAME, a Hugging Face directory, below this one (tests/golden_writer). Tests that run at
// the same time share the directories, so no test writes there.
inline const std::string kGoldenModels = SLUICE_GOLDEN_MODELS;

// Where the repository keeps what the reference (tools/oracle) computed for these models:
// NAME.golden/golden.json and logits.npy.
inline const std::string kGoldens = SLUICE_SOURCE_DIR "/tests/golden/models";

// All of them, sorted.
inline std::vector<std::string> golden_model_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kGoldenModels))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

}  // namespace sluice::testing
