// "The engine can go on" (engine.h): after failed reads and observers that threw, with little memory, the
// text equals that of an engine without errors.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/scratch_directory.h"
#include "base/hash.h"
#include "engine/engine.h"
#include "engine/forward/common/measure_profile.h"
#include "engine/run_report.h"
#include "engine/trace_recorder.h"
#include "engine/watch/statistics.h"
#include "fetch/memory/expert_store.h"
#include "model/architecture.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine::engine_errors_test {
namespace {

const std::string kModel = SLUICE_SOURCE_DIR "/models/fable-moe-18m";
const std::vector<tokenizer::TokenId> kPrompt = {17, 4, 256, 33, 9, 120, 77, 2};
constexpr std::size_t kGenerated = 40;

class EngineErrors : public ::testing::Test {
 protected:
  EngineErrors() : checkpoint_(store::open_checkpoint(kModel)), model_(model::describe_model(*checkpoint_)) {
    options_.threads = 2;
    options_.positions = 64;
    options_.chunk = 4;
    options_.cache = "lru";
    options_.fetch.io = fetch::IoMode::kBuffered;  // not every scratch directory supports direct I/O
    options_.fetch.wrap_reader = [this](std::unique_ptr<DiskReader> inner) {
      return make_faulty_reader(std::move(inner), [this](const DiskRead&) {
        return fail_every_ > 0 && ++reads_ % fail_every_ == 0 ? EIO : 0;
      });
    };
    Engine engine(*checkpoint_, model_, resolve(options_, *checkpoint_, model_));
    expected_ = hashes(engine);
    options_.cache_bytes = 8 * engine.report().experts.sizes().bytes({0, 0}).full;
  }

  // Hashes of the logits after the prompt and after each generated token; repeats a step that fails.
  std::vector<std::uint64_t> hashes(Engine& engine) {
    std::vector<std::uint64_t> all;
    const auto sequence = engine.new_sequence();
    const auto retried = [&](const auto& work) {
      for (;;) {
        try {
          return work();
        } catch (const Error& error) {
          if (error.kind() != ErrorKind::kIo || ++failed_ > 1000) throw;
        }
      }
    };
    const std::span<const tokenizer::TokenId> prompt = kPrompt;
    retried([&] {
      sequence->clear();
      engine.prefill(*sequence, prompt,
                     {[&](std::size_t t) { return t + 1 == prompt.size(); },
                      [&](std::size_t, std::span<const float> row) { all.push_back(hash(row)); }});
    });
    for (std::size_t i = 0; i < kGenerated; ++i)
      retried([&] {
        all.push_back(hash(engine.decode(*sequence, static_cast<tokenizer::TokenId>((i * 37 + 5) % 500))));
      });
    return all;
  }
  static std::uint64_t hash(std::span<const float> row) { return xxh3(std::as_bytes(row)); }

  std::unique_ptr<store::Checkpoint> checkpoint_;
  model::Model model_;
  EngineOptions options_;
  std::atomic<unsigned> fail_every_{0}, reads_{0};  // 0: no read fails
  std::vector<std::uint64_t> expected_;
  std::size_t failed_ = 0;
};

TEST_F(EngineErrors, AMeasurementThatCannotReadLeavesTheEngineAsItWas) {
  Engine engine(*checkpoint_, model_, resolve(options_, *checkpoint_, model_));
  fail_every_ = 2;
  EXPECT_THROW(engine.measure({.repeats = 2, .seed = 1, .sample_bytes = 1 * kMiB}), Error);
  fail_every_ = 0;
  EXPECT_EQ(engine.statistics().total().steps, 0u);
  EXPECT_EQ(hashes(engine), expected_);
  EXPECT_GT(engine.statistics().total().accesses, 0u);
}

class ThrowingObserver final : public RoutingObserver {
 public:
  void on_routing(const experts::ScoresView&, const experts::Routing&) override { count(); }
  void on_decisions(std::uint32_t, const experts::LayerDecision&) override { count(); }

 private:
  void count() {
    if (++calls_ % kPeriod == 0) throw Error(ErrorKind::kIo, "no space left on device");
  }
  static constexpr unsigned kPeriod = 61;  // more tokens than a prompt has
  unsigned calls_ = 0;
};

TEST_F(EngineErrors, AnObserverThatThrowsEndsTheStepOnly) {
  for (const char* cache : {"lru", "fifo", "static", "none"}) {
    SCOPED_TRACE(cache);
    options_.cache = cache;
    Engine engine(*checkpoint_, model_, resolve(options_, *checkpoint_, model_));
    ThrowingObserver observer;
    engine.observe(&observer);
    failed_ = 0;
    EXPECT_EQ(hashes(engine), expected_);
    EXPECT_GT(failed_, 3u);
  }
}

TEST_F(EngineErrors, AStepThatFailedIsNoPartOfTheTrace) {
  const sluice::testing::ScratchDirectory scratch;
  const auto recorded = [&](const std::string& path) {
    Engine engine(*checkpoint_, model_, resolve(options_, *checkpoint_, model_));
    trace::TraceWriter writer = trace::TraceWriter::create(path, trace_header(engine));
    writer.begin_run(Json::object());
    TraceRecorder recorder(writer);
    engine.observe(&recorder);
    EXPECT_EQ(hashes(engine), expected_);
    engine.observe(nullptr);
    writer.close();
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  options_.prefetch = "none";
  const std::string whole = recorded(scratch.file("whole.trace"));
  failed_ = 0;
  options_.fetch.wrap_reader = [this](std::unique_ptr<DiskReader> inner) {
    return make_faulty_reader(std::move(inner), [this](const DiskRead&) {
      return ++reads_ > 500 && reads_ % 1009 == 0 ? EIO : 0;  // spares the dense weights
    });
  };
  EXPECT_TRUE(recorded(scratch.file("faults.trace")) == whole);
  EXPECT_GT(failed_, 0u);
}

}  // namespace
}  // namespace sluice::engine::engine_errors_test
