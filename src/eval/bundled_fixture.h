// The bundled model, its text, and engines that score windows of it. For tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/files/file.h"
#include "engine/engine.h"
#include "engine/plan/engine_plan.h"
#include "engine/plan/options.h"
#include "eval/stepped_windows.h"
#include "model/architecture.h"
#include "model/pack_plan.h"
#include "store/pack/pack.h"
#include "store/source/open_checkpoint.h"
#include "tokenizer/store_tokenizer.h"

namespace sluice::eval::testing {

inline const std::string kFable = SLUICE_SOURCE_DIR "/models/fable-moe-18m";

// Writes it to a store in slices of 4 and 2 bits.
inline void pack_fable_in_slices(const std::string& path) {
  store::PackOptions options;
  options.slices = codec::SliceBits{4, 2};
  store::pack(kFable, path, model::pack_plan(*store::open_checkpoint(kFable)), options);
}

// A checkpoint and its model, which engines refer to.
struct Opened {
  explicit Opened(const std::string& path)
      : checkpoint(store::open_checkpoint(path)), model(model::describe_model(*checkpoint)) {}

  engine::EnginePlan plan(const engine::EngineOptions& options) const {
    return engine::resolve(options, *checkpoint, model);
  }
  std::unique_ptr<engine::Engine> engine(const engine::EngineOptions& options,
                                         std::size_t logit_rows = 32) const {
    return std::make_unique<engine::Engine>(*checkpoint, model, plan(options), logit_rows);
  }

  std::unique_ptr<store::Checkpoint> checkpoint;
  model::Model model;
};

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
