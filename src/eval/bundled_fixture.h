// The bundled model, its text, and engines that score windows of it. For tests.
#pragma once

#include <string>
#include <vector>

#include "base/files/file.h"
#include "engine/engine.h"
#include "engine/plan/options.h"
#include "eval/stepped_windows.h"
#include "store/checkpoint.h"
#include "tokenizer/store_tokenizer.h"

namespace sluice::eval::testing {

inline const std::string kFable = SLUICE_SOURCE_DIR "/models/fable-moe-18m";

// The tokens of its text for tests, or of the first bytes of that.
inline std::vector<tokenizer::TokenId> fable_tokens(const store::Checkpoint& checkpoint, Bytes bytes = kMiB) {
  const auto tokenizer = tokenizer::load_tokenizer_of(checkpoint);
  return tokenizer->encode(read_text_file(kFable + "/eval.txt", kMiB).substr(0, bytes),
                           tokenizer::AddSpecial::kNo);
}

// Options of an engine with room for a window.
inline engine::EngineOptions options_for(const SteppedWindows& windows) {
  engine::EngineOptions options;
  options.memory = 256 * kMiB;
  options.threads = 2;
  options.positions = windows.window;
  options.chunk = 64;
  options.fetch.io = fetch::IoMode::kBuffered;  // not every scratch directory supports direct I/O
  return options;
}

}  // namespace sluice::eval::testing
