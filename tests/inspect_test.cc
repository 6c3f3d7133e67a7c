// `inspect` of the bundled model and of its store, against the safetensors header and the words read here.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "base/files/scratch_directory.h"
#include "base/json/json.h"
#include "bundled_model.h"

namespace {

namespace fs = std::filesystem;
using sluice::Json;
using sluice::read_json_file;
using sluice::program::kModel;
using sluice::program::Outcome;
using sluice::program::run;
using sluice::testing::ScratchDirectory;

struct Group {
  std::uint64_t parameters = 0, bytes = 0, tensors = 0;
  std::array<std::uint64_t, 256> exponents{};

  double entropy() const {
    double bits = 0;
    for (const std::uint64_t count : exponents)
      if (count > 0)
        bits -= static_cast<double>(count) *
                std::log2(static_cast<double>(count) / static_cast<double>(parameters));
    return bits / static_cast<double>(parameters);
  }
};

// The routed experts of model.safetensors, and the other tensors.
struct Oracle {
  Group experts, dense;
  Oracle() {
    std::ifstream file(kModel + "/model.safetensors", std::ios::binary);
    const std::string all(std::istreambuf_iterator<char>(file), {});
    std::uint64_t length = 0;
    std::memcpy(&length, all.data(), sizeof length);
    const Json header = Json::parse(all.substr(8, length));
    for (const auto& [name, tensor] : header.items()) {
      if (name == "__metadata__") continue;
      EXPECT_EQ(tensor["dtype"], "BF16") << name;
      Group& group = name.find(".experts.") != std::string::npos ? experts : dense;
      const std::uint64_t begin = 8 + length + tensor["data_offsets"][0].get<std::uint64_t>();
      const std::uint64_t end = 8 + length + tensor["data_offsets"][1].get<std::uint64_t>();
      std::uint64_t elements = 1;
      for (const Json& dim : tensor["shape"]) elements *= dim.get<std::uint64_t>();
      EXPECT_EQ(end - begin, 2 * elements) << name;
      group.parameters += elements;
      group.bytes += end - begin;
      ++group.tensors;
      for (std::uint64_t at = begin; at < end; at += 2) {
        const auto low = static_cast<unsigned char>(all[at]), high = static_cast<unsigned char>(all[at + 1]);
        ++group.exponents[(high & 0x7F) << 1 | low >> 7];
      }
    }
  }
};

class InspectTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_.emplace();
    ASSERT_EQ(run("pack " + kModel + " -o " + store() + " -q").code, 0);
    ASSERT_EQ(run("pack " + kModel + " -o " + store("zstd") + " --codec zstd -q").code, 0);
    oracle_ = new Oracle;
  }
  static void TearDownTestSuite() {
    delete oracle_;
    directory_.reset();
  }
  static std::string store(const std::string& codec = "native") {
    return directory_->file(codec + ".sluice");
  }

  static Json inspect(const std::string& arguments) {
    const Outcome outcome = run("inspect " + arguments + " --json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return Json::parse(outcome.out);
  }
  static void expect_source(const Json& found, const Group& group) {
    EXPECT_EQ(found["parameters"], group.parameters);
    EXPECT_EQ(found["source_bytes"], group.bytes);
    EXPECT_EQ(found["exponents"], group.parameters);
    EXPECT_EQ(found["exponents_read"], group.parameters);
    EXPECT_EQ(found["entropy_is"], "full");
    EXPECT_NEAR(found["exponent_entropy_bits"].get<double>(), group.entropy(), 1e-9);
  }

  static inline std::optional<ScratchDirectory> directory_;
  static inline const Oracle* oracle_ = nullptr;
};

TEST_F(InspectTest, DirectoryAgreesWithItsHeader) {
  const Json found = inspect(kModel + " --tensors");
  EXPECT_EQ(found["packed"], false);
  expect_source(found["experts"], oracle_->experts);
  expect_source(found["dense"], oracle_->dense);
  for (const char* group : {"experts", "dense"}) {
    EXPECT_EQ(found[group]["bytes"], found[group]["source_bytes"]);
    EXPECT_EQ(found[group]["ratio"], 1.0);
  }
  EXPECT_EQ(found["tensors"].size(), oracle_->experts.tensors + oracle_->dense.tensors);
  EXPECT_EQ(found["parameters"]["total"], oracle_->experts.parameters + oracle_->dense.parameters);
  const Json config = read_json_file(kModel + "/config.json");
  EXPECT_EQ(found["layers"], config["num_hidden_layers"]);
  EXPECT_EQ(found["top_k"], config["num_experts_per_tok"]);
  EXPECT_EQ(found["hidden"], config["hidden_size"]);
  EXPECT_EQ(found["vocab"], config["vocab_size"]);
  const std::uint64_t experts =
      found["experts_per_layer"].get<std::uint64_t>() * found["sparse_layers"].get<std::uint64_t>();
  EXPECT_EQ(oracle_->experts.tensors, 3 * experts);
  EXPECT_EQ(found["parameters"]["active"],
            oracle_->dense.parameters + oracle_->experts.parameters /
                                            found["experts_per_layer"].get<std::uint64_t>() *
                                            found["top_k"].get<std::uint64_t>());
  std::uint64_t parameters = 0;
  for (const auto& [name, tally] : found["classes"].items())
    parameters += tally["parameters"].get<std::uint64_t>();
  EXPECT_EQ(parameters, oracle_->experts.parameters + oracle_->dense.parameters);
}

TEST_F(InspectTest, StoreHoldsTheSameInWhatItsFilesTake) {
  for (const char* codec : {"native", "zstd"}) {
    SCOPED_TRACE(codec);
    const Json found = inspect(store(codec));
    EXPECT_EQ(found["packed"], true);
    EXPECT_EQ(found["codec"], codec);
    expect_source(found["experts"], oracle_->experts);
    expect_source(found["dense"], oracle_->dense);
    // Every byte of the data files, the manifest and the kept headers counts once.
    std::uint64_t on_disk = 0;
    for (const auto& entry : fs::directory_iterator(store(codec))) {
      const std::string name = entry.path().filename();
      if (name.ends_with(".bin") || name == "manifest.json") on_disk += entry.file_size();
    }
    const auto experts = found["experts"]["bytes"].get<std::uint64_t>();
    const auto dense = found["dense"]["bytes"].get<std::uint64_t>();
    EXPECT_EQ(experts + dense, on_disk);
    EXPECT_EQ(found["experts"]["ratio"],
              static_cast<double>(experts) / static_cast<double>(oracle_->experts.bytes));
    EXPECT_GE(experts, fs::file_size(store(codec) + "/experts-00000.bin"));
    EXPECT_LT(found["experts"]["ratio"].get<double>(), 0.8);
    // No code of one exponent after the other is smaller than their entropy; the rest of a word is stored
    // unchanged.
    EXPECT_GE(found["classes"]["experts"]["ratio"].get<double>(),
              (8 + 0.9 * oracle_->experts.entropy()) / 16);
  }
  // The default codec costs hardly more.
  const auto native = inspect(store("native"))["classes"]["experts"]["ratio"].get<double>(),
             zstd = inspect(store("zstd"))["classes"]["experts"]["ratio"].get<double>();
  EXPECT_LT(native, 1.02 * zstd);
}

TEST_F(InspectTest, TextSaysWhatTheJsonSays) {
  for (const std::string& path : {kModel, store()}) {
    const Json found = inspect(path);
    const Outcome outcome = run("inspect " + path + " --tensors");
    ASSERT_EQ(outcome.code, 0);
    const auto expect_in = [&](const std::string& words) {
      EXPECT_NE(outcome.out.find(words), std::string::npos) << words << "\n" << outcome.out;
    };
    char text[64];
    for (const char* group : {"experts", "dense"}) {
      std::snprintf(text, sizeof text, "%s %.3f bits", group,
                    found[group]["exponent_entropy_bits"].get<double>());
      expect_in(text);
      std::snprintf(text, sizeof text, "%.4f\n", found[group]["ratio"].get<double>());
      expect_in(text);
    }
    expect_in(path == kModel ? "not packed" : "packed, codec native");
    expect_in(found["model_type"].get<std::string>() + ": " + found["layers"].dump() + " layers");
    expect_in(found["experts_per_layer"].dump() + " per layer, " + found["top_k"].dump() + " chosen");
    expect_in("BF16  [6400, ");
    expect_in("model.embed_tokens.weight");
  }
}

TEST_F(InspectTest, WhatIsNoModelIsAnError) {
  const Outcome outcome = run("inspect /nowhere --json");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("/nowhere"), std::string::npos);
}

// A GGUF file is shown as its writer describes it, and is not run.
TEST(InspectGguf, ShowsWhatTheFileHolds) {
  const std::string data = SLUICE_SOURCE_DIR "/tests/data/formats/", path = data + "container.gguf";
  const Json written = read_json_file(data + "container.json").at("container.gguf");
  const Json shown = Json::parse(run("inspect " + path + " --json --tensors").out);
  EXPECT_EQ(shown.at("version"), 3);
  EXPECT_EQ(shown.at("keys").at("general.architecture"), "qwen3moe");
  EXPECT_EQ(shown.at("keys").at("t.arr_str"), written.at("values").at("t.arr_str"));
  ASSERT_EQ(shown.at("tensors").size(), written.at("tensors").size());
  for (std::size_t i = 0; i < shown["tensors"].size(); ++i) {
    EXPECT_EQ(shown["tensors"][i].at("name"), written["tensors"][i].at("name"));
    EXPECT_EQ(shown["tensors"][i].at("offset"), written["tensors"][i].at("offset_in_file"));
  }
  const std::string text = run("inspect " + path + " --tensors").out;
  for (const char* part : {"general.architecture = qwen3moe", "t.bool = true", "MXFP4", "Q6_K", "[3, 4, 64]",
                           "blk.0.ffn_gate_exps.weight"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  const Outcome damaged = run("inspect " + data + "container.json");
  EXPECT_NE(damaged.code, 0);
  const Outcome ran = run("run " + path + " -p Once -n 1");
  EXPECT_NE(ran.code, 0);
  EXPECT_NE(ran.err.find("expected a mixture of experts"), std::string::npos) << ran.err;
  const Outcome packed = run("pack " + path + " -o " + path + ".sluice");
  EXPECT_NE(packed.code, 0);
  EXPECT_NE(packed.err.find("expected a mixture of experts"), std::string::npos) << packed.err;
  const Outcome rounded = run("quantise " + path + " -o " + path + ".rounded --slices 8/4");
  EXPECT_NE(rounded.code, 0);
  EXPECT_NE(rounded.err.find("GGUF files are not rounded"), std::string::npos) << rounded.err;
  // The tokenizer of a file is its own; this one has none.
  const Outcome ids =
      run("tokenize " SLUICE_SOURCE_DIR "/tests/fuzz/corpus/gguf_tokenizer/bytes.gguf --json -f " + data +
          "README.md");
  EXPECT_EQ(ids.code, 0) << ids.err;
  const Outcome none = run("tokenize " + path + " -f " + data + "README.md");
  EXPECT_NE(none.code, 0);
  EXPECT_NE(none.err.find("without a tokenizer"), std::string::npos) << none.err;
}

}  // namespace
