// What a trace holds beside the routing: gate inputs and predictions, held against weights that the test
// reads from the checkpoint's bytes by itself.
#include "engine/trace_recorder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/files/scratch_directory.h"
#include "base/hash.h"
#include "base/json/json.h"
#include "engine/engine.h"
#include "engine/plan/engine_plan.h"
#include "engine/plan/options.h"
#include "engine/run_report.h"
#include "engine/session/sequence.h"
#include "model/architecture.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine {
namespace {

namespace fs = std::filesystem;
using sluice::testing::ScratchDirectory;

const std::string kModel = SLUICE_SOURCE_DIR "/models/fable-moe-18m";
constexpr std::size_t kDecoded = 6, kLayers = 6, kExperts = 32, kHidden = 256;

// The tensors of a safetensors file, as bytes.
class Tensors {
 public:
  explicit Tensors(const std::string& path) : path_(path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    std::uint64_t length = 0;
    std::memcpy(&length, bytes_.data(), sizeof length);
    header_ = Json::parse(std::string_view(bytes_).substr(8, length));
    data_ = 8 + length;
  }
  // Elements of a tensor of BF16.
  std::vector<float> words(const std::string& name) const {
    const auto [begin, bytes] = place(name);
    std::vector<float> values;
    for (std::size_t at = begin; at < begin + bytes; at += 2) {
      std::uint16_t word = 0;
      std::memcpy(&word, bytes_.data() + at, sizeof word);
      const std::uint32_t bits = std::uint32_t{word} << 16;
      float value = 0;
      std::memcpy(&value, &bits, sizeof value);
      values.push_back(value);
    }
    return values;
  }
  void clear(const std::string& name) {
    const auto [begin, bytes] = place(name);
    std::fill_n(bytes_.begin() + static_cast<std::ptrdiff_t>(begin), bytes, '\0');
  }
  void save() const { std::ofstream(path_, std::ios::binary) << bytes_; }

 private:
  std::pair<std::size_t, std::size_t> place(const std::string& name) const {
    const Json& range = header_.at(name).at("data_offsets");
    const auto begin = range[std::size_t{0}].get<std::size_t>(),
               end = range[std::size_t{1}].get<std::size_t>();
    return {data_ + begin, end - begin};
  }

  std::string path_, bytes_;
  Json header_;
  std::size_t data_ = 0;
};

std::string layer_tensor(std::size_t layer, const std::string& name) {
  return "model.layers." + std::to_string(layer) + "." + name + ".weight";
}

struct Recording {
  std::vector<std::uint64_t> logits;  // hashes, of each decode step
  std::uint64_t decisions = 0;
};

Recording run(const std::string& model_path, const std::string& trace_path, const TraceExtras& extras) {
  const std::unique_ptr<store::Checkpoint> checkpoint = store::open_checkpoint(model_path);
  const model::Model model = model::describe_model(*checkpoint);
  EngineOptions options;
  options.threads = 2;
  options.positions = 32;
  options.chunk = 4;
  options.cache = "lru";
  options.prefetch = "none";
  options.cache_bytes = kMiB;
  options.fetch.io = fetch::IoMode::kBuffered;  // not every scratch directory supports direct I/O
  Engine engine(*checkpoint, model, resolve(options, *checkpoint, model));
  trace::TraceWriter writer = trace::TraceWriter::create(trace_path, trace_header(engine, extras));
  writer.begin_run(run_record(engine));
  TraceRecorder recorder(writer);
  engine.observe(&recorder);
  Recording recording;
  const std::unique_ptr<Sequence> sequence = engine.new_sequence();
  engine.prefill(*sequence, std::vector<tokenizer::TokenId>{17, 4, 256, 33, 9, 120},
                 {[](std::size_t) { return false; }, [](std::size_t, std::span<const float>) {}});
  for (std::size_t i = 0; i < kDecoded; ++i)
    recording.logits.push_back(
        xxh3(std::as_bytes(engine.decode(*sequence, static_cast<tokenizer::TokenId>(i * 37 + 5)))));
  recording.decisions = engine.report().decision_hash();
  writer.close();
  return recording;
}

TEST(TraceRecorder, ExtrasChangeNeitherTheTextNorADecision) {
  const ScratchDirectory scratch;
  const Recording plain = run(kModel, scratch.file("plain"), {}),
                  more = run(kModel, scratch.file("more"), {.ahead = true, .gate_inputs = true});
  EXPECT_EQ(plain.logits, more.logits);
  EXPECT_EQ(plain.decisions, more.decisions);
  const auto a = trace::open_trace(scratch.file("plain")), b = trace::open_trace(scratch.file("more"));
  EXPECT_TRUE(a->header().ahead.empty());
  EXPECT_EQ(a->header().gate_inputs, 0u);
  EXPECT_EQ(b->header().gate_inputs, kHidden);
  trace::TraceEvent one, other;
  std::size_t events = 0;
  for (; a->next(one); ++events) {
    ASSERT_TRUE(b->next(other));
    EXPECT_TRUE(std::ranges::equal(one.logits, other.logits));
    EXPECT_EQ(other.ahead.size(), other.layer == 0 ? 0u : 3u);
  }
  EXPECT_FALSE(b->next(other));
  EXPECT_EQ(events, (2 + kDecoded) * kLayers);
}

// And "raw" predicts those of the gate inputs of the layer before.
TEST(TraceRecorder, RecordedLogitsAreTheRoutersProductsOfTheGateInputs) {
  const ScratchDirectory scratch;
  run(kModel, scratch.file("a.trace"), {.ahead = true, .gate_inputs = true});
  const Tensors tensors(kModel + "/model.safetensors");
  std::vector<std::vector<float>> routers;
  for (std::size_t layer = 0; layer < kLayers; ++layer)
    routers.push_back(tensors.words(layer_tensor(layer, "mlp.gate")));
  const auto trace = trace::open_trace(scratch.file("a.trace"));
  trace::TraceEvent event;
  std::vector<float> before;  // gate inputs of the layer before
  const auto check = [&](std::span<const float> inputs, std::span<const float> logits) {
    for (std::size_t t = 0; t < event.tokens; ++t)
      for (std::size_t e = 0; e < kExperts; ++e) {
        double sum = 0, magnitude = 0;
        for (std::size_t i = 0; i < kHidden; ++i) {
          const double product =
              double{inputs[t * kHidden + i]} * double{routers[event.layer][e * kHidden + i]};
          sum += product;
          magnitude += std::abs(product);
        }
        ASSERT_NEAR(logits[t * kExperts + e], sum, 1e-6 * magnitude)
            << "step " << event.step << ", layer " << event.layer << ", token " << t << ", expert " << e;
      }
  };
  while (trace->next(event)) {
    check(event.gate_inputs, event.logits);
    if (event.layer > 0) {
      ASSERT_EQ(event.ahead[1].predictor, "raw");
      check(before, event.ahead[1].logits);
    }
    before.assign(event.gate_inputs.begin(), event.gate_inputs.end());
  }
}

// Without an attention that adds anything, the next layer's router sees what "stream+layer" predicts from.
TEST(TraceRecorder, PredictionsBehindALayerComeTrueWhereAttentionAddsNothing) {
  const ScratchDirectory scratch;
  const std::string model = scratch.file("model");
  fs::copy(kModel, model);
  Tensors tensors(model + "/model.safetensors");
  for (std::size_t layer = 0; layer < kLayers; ++layer)
    tensors.clear(layer_tensor(layer, "self_attn.o_proj"));
  tensors.save();
  run(model, scratch.file("a.trace"), {.ahead = true});
  const auto trace = trace::open_trace(scratch.file("a.trace"));
  EXPECT_EQ(trace->header().ahead, (std::vector<std::string>{"stream", "raw", "stream+layer"}));
  trace::TraceEvent event;
  std::size_t events = 0;
  while (trace->next(event)) {
    if (event.layer == 0) continue;
    ++events;
    ASSERT_EQ(event.ahead.size(), 3u);
    EXPECT_TRUE(std::ranges::equal(event.ahead[2].logits, event.logits));
    EXPECT_FALSE(std::ranges::equal(event.ahead[0].logits, event.logits));
  }
  EXPECT_EQ(events, (2 + kDecoded) * (kLayers - 1));
}

}  // namespace
}  // namespace sluice::engine
