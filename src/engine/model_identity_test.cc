#include "engine/model_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "base/error.h"
#include "base/hash.h"
#include "base/json/json.h"
#include "engine/engine.h"
#include "engine/plan/engine_plan.h"
#include "engine/plan/memory_plan.h"
#include "engine/plan/options.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "model/pack_plan.h"
#include "store/pack/testing.h"
#include "store/source/open_checkpoint.h"

namespace sluice::engine::model_identity_test {
namespace {

using store::testing::TempDirectory;
using ::testing::HasSubstr;

struct Opened {
  explicit Opened(const std::string& path)
      : checkpoint(store::open_checkpoint(path)), model(model::describe_model(*checkpoint)) {}
  std::unique_ptr<store::Checkpoint> checkpoint;
  model::Model model;
};

EngineOptions buffered() {
  EngineOptions options;
  options.memory = process_bytes(256 * kMiB) + 256 * kMiB;
  options.fetch.io = fetch::IoMode::kBuffered;  // not every scratch directory supports direct I/O
  return options;
}

std::uint64_t from_files(const std::string& path) {
  const Opened open(path);
  return model_identity(*open.checkpoint, open.model, buffered().fetch);
}

std::uint64_t from_engine(const std::string& path) {
  const Opened open(path);
  EngineOptions with = buffered();
  if (open.checkpoint->slices()) with.precision = experts::PrecisionMode::kHigh;
  return model_identity(Engine(*open.checkpoint, open.model, resolve(with, *open.checkpoint, open.model)));
}

// Computed from the single safetensors file of a model with routers of this name, as the format's page says.
std::uint64_t as_written(const std::string& directory, const std::string& router) {
  const std::string bytes = store::testing::read_file(directory + "/model.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const Json header = Json::parse(bytes.substr(8, length));
  std::string text;
  std::map<int, std::string> routers;                  // words, by layer
  for (const auto& [name, tensor] : header.items()) {  // ascending
    if (name == "__metadata__") continue;
    std::string shape;
    for (const Json& size : tensor["shape"]) shape += (shape.empty() ? "" : ", ") + size.dump();
    text += name + ' ' + tensor["dtype"].get<std::string>() + " [" + shape + "]\n";
    if (!name.ends_with(router)) continue;
    const auto begin = tensor["data_offsets"][0].get<std::size_t>();
    const auto end = tensor["data_offsets"][1].get<std::size_t>();
    routers[std::stoi(name.substr(std::string("model.layers.").size()))] =
        bytes.substr(8 + length + begin, end - begin);
  }
  EXPECT_GT(routers.size(), 1u);
  for (const auto& [layer, words] : routers) text += words;
  return xxh3(std::as_bytes(std::span(text)));
}

std::string packed(const std::string& source, const std::string& target, const store::PackOptions& options) {
  store::pack(source, target, model::pack_plan(*store::open_checkpoint(source)), options);
  return target;
}

TEST(ModelIdentity, IsOfTheModelInWhateverFormItLies) {
  const TempDirectory scratch;
  for (const auto& [name, router] :
       {std::pair(std::string(SLUICE_SOURCE_DIR "/models/fable-moe-18m"), ".mlp.gate.weight"),
        std::pair(sluice::testing::kGoldenModels + "/mixtral_a", ".block_sparse_moe.gate.weight")}) {
    SCOPED_TRACE(name);
    const std::uint64_t expected = as_written(name, router);
    EXPECT_EQ(from_files(name), expected);
    EXPECT_EQ(from_engine(name), expected);
    store::PackOptions native, zstd, sliced;
    zstd.codec = "zstd";
    sliced.slices = codec::SliceBits{8, 4};
    sliced.dense = store::DenseRounding::kInt8;
    sliced.least_split_dense = native.least_split_dense = 0;  // also small matrices
    for (const store::PackOptions& options : {native, zstd, sliced}) {
      const std::string store = packed(name, scratch / "m.sluice", options);
      EXPECT_EQ(from_files(store), expected);
      EXPECT_EQ(from_engine(store), expected);
      std::filesystem::remove_all(store);
    }
  }
}

TEST(ModelIdentity, IsAnotherOneForOtherRouters) {
  const std::string a = sluice::testing::kGoldenModels + "/mixtral_a",
                    b = sluice::testing::kGoldenModels + "/mixtral_b";
  EXPECT_NE(from_files(a), from_files(b));
}

TEST(ModelIdentity, ADamagedRouterIsNamed) {
  const TempDirectory scratch;
  const std::string store = packed(sluice::testing::kGoldenModels + "/mixtral_a", scratch / "m.sluice", {});
  const Opened open(store);
  const model::TensorSpec& router = *open.model.find(model::Role::kRouter, 1);
  const store::StoredPiece piece =
      open.checkpoint->locate({router.name, 0, open.checkpoint->find(router.name)->elements()});
  const store::Extent& extent = piece.first();
  std::fstream file(open.checkpoint->weight_files()[extent.file],
                    std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(extent.offset));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(extent.offset));
  file.put(static_cast<char>(byte ^ 1));
  file.close();
  try {
    model_identity(*open.checkpoint, open.model, buffered().fetch);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
    EXPECT_THAT(error.what(), HasSubstr(router.name));
  }
}

}  // namespace
}  // namespace sluice::engine::model_identity_test
