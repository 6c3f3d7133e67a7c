// What tests of read-ahead share: the bundled model, and tokens whose logits are compared. Production code
// does not include this header.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/hash.h"
#include "engine/engine.h"
#include "engine/plan/engine_plan.h"
#include "engine/plan/options.h"
#include "fetch/fetch_options.h"
#include "model/architecture.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine {

class PrefetchTest : public ::testing::Test {
 protected:
  explicit PrefetchTest(std::size_t positions)
      : checkpoint_(store::open_checkpoint(SLUICE_SOURCE_DIR "/models/fable-moe-18m")),
        model_(model::describe_model(*checkpoint_)) {
    options_.threads = 2;
    options_.positions = positions;
    options_.cache = "lru";
    options_.scheduler = "fifo";
    options_.fetch.io = fetch::IoMode::kBuffered;  // not every scratch directory supports direct I/O
  }

  // Decodes the i-th token; the hash of its logits.
  static std::uint64_t next(Engine& engine, Sequence& sequence, std::size_t i) {
    return xxh3(std::as_bytes(engine.decode(sequence, static_cast<tokenizer::TokenId>((i * 37 + 5) % 500))));
  }

  std::unique_ptr<store::Checkpoint> checkpoint_;
  model::Model model_;
  EngineOptions options_;
};

}  // namespace sluice::engine
