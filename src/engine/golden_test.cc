// Conformance: our logits against Hugging Face transformers (or the plain references, see tools/oracle) on tiny random
// models of every architecture, and the bits of our own logits against each other.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"
#include "engine/generate.h"
#include "kernels/elementwise.h"

namespace sluice::engine {
namespace {

namespace fs = std::filesystem;

const fs::path kModels = fs::path(SLUICE_SOURCE_DIR) / "tests/golden/models";

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kModels))
    if (entry.path().extension() == ".golden") names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

struct Golden {
  std::vector<model::TokenId> tokens, greedy;
  std::vector<float> logits;  // (tokens, vocab)
  double largest = 0;
};

// The part of .npy v1.0 that the tool writes: <f4, C order.
std::vector<float> read_npy(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  char head[10];
  file.read(head, 10);
  EXPECT_EQ(std::memcmp(head, "\x93NUMPY\x01\x00", 8), 0) << path;
  const std::size_t header = static_cast<unsigned char>(head[8]) + 256u * static_cast<unsigned char>(head[9]);
  std::string text(header, ' ');
  file.read(text.data(), static_cast<std::streamsize>(header));
  EXPECT_NE(text.find("'<f4'"), std::string::npos);
  std::vector<float> values((fs::file_size(path) - 10 - header) / 4);
  file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * 4));
  return values;
}

Golden read_golden(const std::string& name) {
  Golden golden;
  const fs::path directory = kModels / (name + ".golden");
  const Json json = read_json_file(directory / "golden.json");
  golden.tokens = json.at("tokens").get<std::vector<model::TokenId>>();
  golden.greedy = json.at("greedy").get<std::vector<model::TokenId>>();
  golden.logits = read_npy(directory / "logits.npy");
  for (float logit : golden.logits) golden.largest = std::max<double>(golden.largest, std::abs(logit));
  return golden;
}

EngineOptions small_options(Math math) {
  EngineOptions options;
  options.memory = 256 * kMiB;
  options.threads = 2;
  options.math = math;
  options.positions = 96;
  options.fetch.io = fetch::IoMode::kBuffered;
  return options;
}

// Logits of every token, in steps of at most `chunk` tokens.
std::vector<float> all_logits(const std::string& path, const std::vector<model::TokenId>& tokens, const EngineOptions& options) {
  const auto checkpoint = store::open_checkpoint(path);
  const model::Model model = model::describe_model(*checkpoint);
  Engine engine(*checkpoint, model, options, 4);
  const auto sequence = engine.new_sequence();
  std::vector<float> logits;
  engine.prefill(*sequence, tokens, {[](std::size_t) { return true; }, [&](std::size_t, std::span<const float> row) {
                                       logits.insert(logits.end(), row.begin(), row.end());
                                     }});
  return logits;
}

class GoldenTest : public testing::TestWithParam<std::string> {
 protected:
  std::string path() const { return kModels / GetParam(); }
};

TEST_P(GoldenTest, F32LogitsEqualTheOracle) {
  const Golden golden = read_golden(GetParam());
  const std::vector<float> logits = all_logits(path(), golden.tokens, small_options(Math::kF32));
  ASSERT_EQ(logits.size(), golden.logits.size());
  double worst = 0;
  for (std::size_t i = 0; i < logits.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(logits[i]) - golden.logits[i]));
  EXPECT_LE(worst, 1e-4 * golden.largest);
  RecordProperty("worst_relative", std::to_string(worst / golden.largest));
}

TEST_P(GoldenTest, AutoLogitsAreNearTheOracleAtNinePositionsOfTen) {
  const Golden golden = read_golden(GetParam());
  const std::vector<float> logits = all_logits(path(), golden.tokens, small_options(Math::kAuto));
  const std::size_t vocab = logits.size() / golden.tokens.size();
  std::size_t near = 0;
  for (std::size_t t = 0; t < golden.tokens.size(); ++t) {
    double worst = 0;
    for (std::size_t i = t * vocab; i < (t + 1) * vocab; ++i)
      worst = std::max(worst, std::abs(static_cast<double>(logits[i]) - golden.logits[i]));
    near += worst <= 3e-2 * golden.largest;
  }
  EXPECT_GE(near * 10, golden.tokens.size() * 9);
}

TEST_P(GoldenTest, F32GreedyTokensEqualTheOracle) {
  const Golden golden = read_golden(GetParam());
  const auto checkpoint = store::open_checkpoint(path());
  const model::Model model = model::describe_model(*checkpoint);
  Engine engine(*checkpoint, model, small_options(Math::kF32));
  GenerateRequest request;
  request.prompt = golden.tokens;
  request.max_tokens = golden.greedy.size();
  request.ignore_eos = true;
  EXPECT_EQ(generate(engine, nullptr, request).tokens, golden.greedy);
}

TEST_P(GoldenTest, EveryWayOfRunningGivesTheSameBits) {
  const Golden golden = read_golden(GetParam());
  for (const Math math : {Math::kF32, Math::kAuto}) {
    const EngineOptions plain = small_options(math);
    const std::vector<float> expected = all_logits(path(), golden.tokens, plain);
    const auto expect_same = [&](const char* what, const EngineOptions& options) {
      const std::vector<float> found = all_logits(path(), golden.tokens, options);
      ASSERT_EQ(found.size(), expected.size());
      EXPECT_EQ(std::memcmp(found.data(), expected.data(), expected.size() * sizeof(float)), 0) << what;
    };
    for (const std::size_t chunk : {1, 3, 7, 48}) {
      EngineOptions options = plain;
      options.chunk = chunk;
      expect_same("chunk", options);
    }
    EngineOptions options = plain;
    options.threads = 1;
    expect_same("threads", options);
    for (const Isa isa : available_isas()) {
      options = plain;
      options.isa = isa_name(isa);
      expect_same("isa", options);
    }
    for (const char* cache : {"none", "lru", "lfu", "fifo", "marking"}) {
      options = plain;
      options.cache = cache;
      options.chunk = 4;
      options.memory = std::nullopt;
      expect_same(cache, options);
      options.cache_scope = "layer";
      expect_same(cache, options);
    }
    options = plain;
    options.fetch.io = fetch::IoMode::kMmap;
    expect_same("mmap", options);
    options = plain;
    options.fetch.disk.method = DiskMethod::kPread;
    expect_same("pread", options);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest, testing::ValuesIn(model_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace sluice::engine
