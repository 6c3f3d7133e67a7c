// Packed stores as the program's commands make, check and restore them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "model/golden_models.h"
#include "program.h"
#include "store/pack/testing.h"
#include "store/source/open_checkpoint.h"

namespace sluice::store {
namespace {

using namespace testing;  // NOLINT: the helpers of store/pack/testing.h
using program::Outcome;
using ::testing::HasSubstr;

Outcome sluice(const std::string& arguments) { return program::run(arguments); }

class StoreProgram : public ::testing::Test {
 protected:
  const TempDirectory temp_;
  const std::string model_ = sluice::testing::kGoldenModels + "/qwen2_moe_a";
};

TEST_F(StoreProgram, PacksVerifiesAndUnpacksGoldenModels) {
  int models = 0;
  for (const std::string& name : sluice::testing::golden_model_names()) {
    const std::string source = sluice::testing::kGoldenModels + "/" + name;
    if (!fs::exists(source + "/model.safetensors") || !source.ends_with("_a")) continue;
    ++models;
    const std::string store = temp_ / "m.sluice", back = temp_ / "back";
    const Outcome packed = sluice(fmt::format("pack '{}' -o '{}' --json --quiet", source, store));
    ASSERT_EQ(packed.code, 0) << source << ": " << packed.err;
    EXPECT_GT(Json::parse(packed.out)["experts"], 0);
    const Outcome verified = sluice(fmt::format("verify '{}' --full --json --quiet", store));
    ASSERT_EQ(verified.code, 0) << verified.err;
    EXPECT_EQ(Json::parse(verified.out)["ok"], true);
    ASSERT_EQ(sluice(fmt::format("unpack '{}' -o '{}'", store, back)).code, 0);
    EXPECT_EQ(read_tree(source), read_tree(back));
    fs::remove_all(store);
    fs::remove_all(back);
  }
  EXPECT_GT(models, 3);
}

// A GGUF file as `synth` writes one: the store gives the same tokens at any budget, and the file back.
TEST_F(StoreProgram, PacksAGgufFileAndGivesItBack) {
  const std::string config = temp_ / "config.json", file = temp_ / "files/m.gguf", store = temp_ / "m.sluice";
  write_file(config, R"({"model_type": "qwen3_moe", "vocab_size": 256, "hidden_size": 256, "head_dim": 32,
    "num_hidden_layers": 3, "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 256,
    "moe_intermediate_size": 256, "num_experts": 6, "num_experts_per_tok": 2, "norm_topk_prob": true,
    "rope_theta": 10000.0, "max_position_embeddings": 512, "bos_token_id": 1, "eos_token_id": 2})");
  fs::create_directory(temp_ / "files");
  const Outcome made = sluice(fmt::format("synth '{}' --format q4_k_m -o '{}' --quiet", config, file));
  ASSERT_EQ(made.code, 0) << made.err;

  const auto refused = [&](const std::string& flags) {
    const Outcome outcome = sluice(fmt::format("pack '{}' -o '{}' {}", file, store, flags));
    EXPECT_NE(outcome.code, 0) << flags;
    EXPECT_FALSE(fs::exists(store) || fs::exists(store + ".partial")) << flags;
    return outcome.err;
  };
  EXPECT_THAT(refused("--codec lz4"), HasSubstr("--codec: a codec would compress nothing of this model"));
  EXPECT_THAT(refused("--chunks 2"), HasSubstr("--chunks: a codec would compress nothing of this model"));
  EXPECT_THAT(refused("--slices 8/4"), HasSubstr("cannot be stored in slices"));
  EXPECT_THAT(refused("--exclude '*.txt'"), HasSubstr("nothing can be left out"));

  const Outcome packed = sluice(fmt::format("pack '{}' -o '{}' --json --quiet", file, store));
  ASSERT_EQ(packed.code, 0) << packed.err;
  EXPECT_EQ(Json::parse(packed.out)["experts"], 18);
  EXPECT_EQ(Json::parse(packed.out)["codec"], "none");
  EXPECT_EQ(Json::parse(packed.out)["family"], "raw");
  EXPECT_EQ(Json::parse(packed.out)["tokenizer"], "none");
  ASSERT_EQ(sluice(fmt::format("verify '{}' --full --quiet", store)).code, 0);
  const Outcome shown = sluice(fmt::format("inspect '{}' --json", store));
  ASSERT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(Json::parse(shown.out)["formats"].get<std::vector<std::string>>(),
              ::testing::IsSupersetOf({"q4_k", "q6_k"}));
  EXPECT_EQ(Json::parse(shown.out)["model_type"], "qwen3_moe");
  EXPECT_THAT(sluice(fmt::format("inspect '{}'", store)).out, HasSubstr("q4_k"));

  const auto tokens_of = [&](const std::string& model, const std::string& flags) {
    const Outcome ran = sluice(
        fmt::format("run '{}' --tokens 5,17,200,33,41 -n 24 --temp 0 --ignore-eos --quiet {}", model, flags));
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_FALSE(ran.out.empty());
    return ran.out;
  };
  const std::string expected = tokens_of(file, "");
  EXPECT_EQ(tokens_of(store, ""), expected);
  EXPECT_EQ(tokens_of(store, "--cache none"), expected);

  ASSERT_EQ(sluice(fmt::format("unpack '{}' -o '{}'", store, temp_ / "back")).code, 0);
  EXPECT_EQ(read_tree(temp_ / "back"), read_tree(temp_ / "files"));
}

TEST_F(StoreProgram, PacksSlicesAndSaysWhatCannotBeDoneWithThem) {
  for (const char* slices : {"8/4", "6/3", "4/2"}) {
    const std::string store = temp_ / "s.sluice";
    const Outcome packed = sluice(
        fmt::format("pack '{}' -o '{}' --slices {} --dense int8 --json --quiet", model_, store, slices));
    ASSERT_EQ(packed.code, 0) << packed.err;
    const Json told = Json::parse(packed.out);
    EXPECT_EQ(told["family"], "sliced");
    EXPECT_EQ(told["slices"], slices);
    EXPECT_EQ(sluice(fmt::format("verify '{}' --full --quiet", store)).code, 0);
    const Json found = Json::parse(sluice(fmt::format("inspect '{}' --json", store)).out);
    EXPECT_EQ(found["family"], "sliced");
    EXPECT_EQ(fmt::format("{}/{}", found["slices"]["high"].get<int>(), found["slices"]["low"].get<int>()),
              slices);
    EXPECT_GT(found["slices"]["msb_bytes"], found["slices"]["lsb_bytes"]);
    EXPECT_GE(found["experts"]["bytes"].get<std::uint64_t>(),
              found["slices"]["msb_bytes"].get<std::uint64_t>() +
                  found["slices"]["lsb_bytes"].get<std::uint64_t>());
    EXPECT_TRUE(found["experts"]["exponent_entropy_bits"].is_null());
    EXPECT_THAT(sluice(fmt::format("inspect '{}'", store)).out,
                HasSubstr(fmt::format("slices of {} bits", slices)));
    const Outcome unpacked = sluice(fmt::format("unpack '{}' -o '{}'", store, temp_ / "back"));
    EXPECT_EQ(unpacked.code, 1);
    EXPECT_THAT(unpacked.err, HasSubstr("cannot be unpacked"));
    for (const std::string& command :
         {std::string("run --tokens 1,2 -n 1"), fmt::format("forward --tokens 1,2 --out {}", temp_ / "l.npy"),
          std::string("plan")}) {
      const Outcome computed = sluice(fmt::format("{} '{}'", command, store));
      EXPECT_EQ(computed.code, 2);
      EXPECT_THAT(computed.err, HasSubstr("--precision high, low or dbsc, --preset slicemoe, or --max-loss"));
      EXPECT_EQ(std::count(computed.err.begin(), computed.err.end(), '\n'), 1) << computed.err;
    }
    const Outcome refused = sluice(fmt::format("profile '{}'", store));
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err, HasSubstr("family sliced"));
    fs::remove_all(store);
  }
  for (const auto& [flags, words] :
       std::vector<std::pair<std::string, std::string>>{{"--slices 8/5", "8/4, 6/3 or 4/2"},
                                                        {"--dense int8", "--slices"},
                                                        {"--slices 8/4 --dense int4", "int8"}}) {
    const Outcome refused = sluice(fmt::format("pack '{}' -o '{}' {}", model_, temp_ / "s.sluice", flags));
    EXPECT_EQ(refused.code, 2) << flags;
    EXPECT_THAT(refused.err, HasSubstr(words));
  }
}

TEST_F(StoreProgram, QuantisesCopiesThatCanBeRun) {
  const auto logits = [&](const std::string& model) {
    const std::string out = temp_ / "logits.npy";
    const Outcome outcome =
        sluice(fmt::format("forward '{}' --tokens 1,2,3 --math f32 --out '{}' --quiet", model, out));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::string bytes = read_file(out).substr(128);
    std::vector<float> values(bytes.size() / 4);
    std::memcpy(values.data(), bytes.data(), 4 * values.size());
    fs::remove(out);
    return values;
  };
  const std::vector<float> exact = logits(model_);
  double before = 0;
  for (const char* quantiser : {"asym_high", "amat", "asym_keep_zero"}) {  // worse from one to the next
    const std::string copy = temp_ / quantiser;
    const Outcome outcome = sluice(
        fmt::format("quantise '{}' -o '{}' --quantiser {} --slices 8/4 --json", model_, copy, quantiser));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(Json::parse(outcome.out)["quantiser"], quantiser);
    const std::vector<float> rounded = logits(copy);
    ASSERT_EQ(rounded.size(), exact.size());
    double error = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) error += std::fabs(rounded[i] - exact[i]);
    EXPECT_GT(error, 2 * before) << quantiser;
    before = error;
  }
  const Outcome unknown = sluice(fmt::format("quantise '{}' -o '{}' --quantiser best", model_, temp_ / "x"));
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("amat_center"));
}

TEST_F(StoreProgram, AHubCacheIsRestoredAsFiles) {
  const std::string snapshot = temp_ / "hub/snapshots/abc";
  fs::create_directories(snapshot);
  int blob = 0;
  for (const auto& [name, content] : read_tree(model_)) {
    write_file(temp_ / fmt::format("hub/blobs/{}", blob), content);
    fs::create_symlink(fmt::format("../../blobs/{}", blob++), fmt::format("{}/{}", snapshot, name));
  }
  write_file(snapshot + "/pytorch_model.bin", "the same weights once more");
  const std::string store = temp_ / "m.sluice";
  const Outcome refused = sluice(fmt::format("pack '{}' -o '{}'", snapshot, store));
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("--exclude 'pytorch_model.bin'"));
  ASSERT_EQ(sluice(fmt::format("pack '{}' -o '{}' --exclude '*.bin'", snapshot, store)).code, 0);
  ASSERT_EQ(sluice(fmt::format("unpack '{}' -o '{}'", store, temp_ / "back")).code, 0);
  EXPECT_EQ(read_tree(model_), read_tree(temp_ / "back"));
  for (const auto& entry : fs::directory_iterator(temp_ / "back")) EXPECT_FALSE(entry.is_symlink());
}

TEST_F(StoreProgram, VerifyReportsDamageAsJsonAndExitsWith1) {
  const std::string store = temp_ / "m.sluice";
  ASSERT_EQ(sluice(fmt::format("pack '{}' -o '{}' --quiet", model_, store)).code, 0);
  std::string bytes = read_file(store + "/dense.bin");
  bytes[5] ^= 1;
  write_file(store + "/dense.bin", bytes);
  write_file(store + "/stray", "");
  const Outcome outcome = sluice(fmt::format("verify '{}' --json", store));
  EXPECT_EQ(outcome.code, 1);
  const Json report = Json::parse(outcome.out);
  EXPECT_EQ(report["ok"], false);
  EXPECT_EQ(report["errors"].size(), 2u);
  EXPECT_EQ(report["errors"][0]["file"], "dense.bin");
  EXPECT_EQ(report["errors"][0]["offset"], 0);
  EXPECT_NE(report["errors"][0]["expected"], report["errors"][0]["found"]);
  EXPECT_EQ(report["errors"][0]["message"], "the checksum of a part is wrong");
  EXPECT_EQ(report["errors"][0]["fix"], "copy the store again, or pack the model again");
  EXPECT_EQ(report["errors"][1]["fix"], "remove it");
  const Outcome plain = sluice(fmt::format("verify '{}'", store));
  EXPECT_EQ(plain.code, 1);
  EXPECT_THAT(plain.err, HasSubstr("dense.bin at byte 0: the checksum of a part is wrong; expected XXH3 "));
  EXPECT_THAT(plain.err, HasSubstr("the store is damaged; copy it again, or pack the model again\n"));
}

TEST_F(StoreProgram, VerifySaysWhatTheErrorsMeanForTheStore) {
  const std::string store = temp_ / "m.sluice";
  ASSERT_EQ(sluice(fmt::format("pack '{}' -o '{}' --quiet", model_, store)).code, 0);
  write_file(store + "/stray", "");
  const Outcome stray = sluice(fmt::format("verify '{}'", store));
  EXPECT_EQ(stray.code, 1);
  EXPECT_THAT(stray.err, HasSubstr("stray at byte 0: a file that does not belong to the store; remove it\n"));
  EXPECT_THAT(stray.err, HasSubstr("the packed data is sound"));
  fs::remove(store + "/stray");
  std::string manifest = read_file(store + "/manifest.json");
  manifest[manifest.find("\"version\":") + 10] = '9';
  write_file(store + "/manifest.json", manifest);
  const Outcome other = sluice(fmt::format("verify '{}'", store));
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err,
              HasSubstr("the store has another format version; expected 1, found 9; use the version"));
  EXPECT_THAT(other.err, HasSubstr("cannot be read by this version of Sluice, or it is damaged"));
}

// Advice names only operations that are possible with the store.
TEST_F(StoreProgram, AStoreInPlaceOfADirectoryGetsAdviceForItsFamily) {
  const std::string split = temp_ / "m.sluice", sliced = temp_ / "s.sluice";
  ASSERT_EQ(sluice(fmt::format("pack '{}' -o '{}' --quiet", model_, split)).code, 0);
  ASSERT_EQ(sluice(fmt::format("pack '{}' -o '{}' --slices 8/4 --quiet", model_, sliced)).code, 0);
  for (const char* command : {"pack", "quantise"}) {
    const Outcome of_split = sluice(fmt::format("{} '{}' -o '{}'", command, split, temp_ / "other"));
    EXPECT_EQ(of_split.code, 1);
    EXPECT_THAT(of_split.err, HasSubstr("this is a packed store; expected the directory of a model"));
    EXPECT_THAT(of_split.err, HasSubstr("or restore that: sluice unpack"));
    const Outcome of_sliced = sluice(fmt::format("{} '{}' -o '{}'", command, sliced, temp_ / "other"));
    EXPECT_EQ(of_sliced.code, 1);
    EXPECT_THAT(of_sliced.err, HasSubstr("its experts are rounded, and it cannot be unpacked"));
    EXPECT_EQ(of_sliced.err.find("sluice unpack"), std::string::npos) << of_sliced.err;
  }
}

TEST_F(StoreProgram, AWeightWithoutAValueGetsTheAdviceOfItsCommand) {
  const std::string model = temp_ / "nan", name = "model.layers.0.mlp.experts.0.up_proj.weight";
  fs::copy(model_, model, fs::copy_options::recursive);
  const auto checkpoint = open_checkpoint(model);
  const Extent place = checkpoint->locate({name, 0, checkpoint->find(name)->elements()}).first();
  std::string weights = read_file(checkpoint->weight_files()[place.file]);
  weights.replace(place.offset + 4, 2, "\xc0\x7f");  // NaN in BF16, little-endian
  write_file(checkpoint->weight_files()[place.file], weights);
  const Outcome packed = sluice(fmt::format("pack '{}' -o '{}' --slices 8/4", model, temp_ / "x.sluice"));
  EXPECT_EQ(packed.code, 1);
  EXPECT_THAT(packed.err,
              HasSubstr("found NaN; download the file again, or pack the model without --slices"));
  EXPECT_THAT(packed.err, HasSubstr(name));
  const Outcome rounded = sluice(fmt::format("quantise '{}' -o '{}'", model, temp_ / "x"));
  EXPECT_EQ(rounded.code, 1);
  EXPECT_THAT(rounded.err, HasSubstr("found NaN; download the file again"));
  EXPECT_EQ(rounded.err.find("--slices"), std::string::npos) << rounded.err;
}

TEST_F(StoreProgram, AConfigurationThatAStoreLacksIsNotToBeDownloadedBesideWeights) {
  const TinyModel tiny;
  write_tiny_model(temp_ / "source", tiny);
  fs::remove(temp_ / "source/config.json");
  pack(temp_ / "source", temp_ / "m.sluice", tiny_plan(tiny), tiny_options("zstd"));
  const Outcome of_store = sluice(fmt::format("inspect '{}'", temp_ / "m.sluice"));
  EXPECT_EQ(of_store.code, 1);
  EXPECT_THAT(of_store.err, HasSubstr("config.json is missing"));
  EXPECT_THAT(of_store.err, HasSubstr("; pack the model again, from a directory that has it\n"));
  EXPECT_THAT(sluice(fmt::format("inspect '{}'", temp_ / "source")).err,
              HasSubstr("; download it beside the weights\n"));
}

TEST_F(StoreProgram, UnpackHasTheSameLeastMemoryAsPack) {
  const std::string store = temp_ / "m.sluice";
  ASSERT_EQ(sluice(fmt::format("pack '{}' -o '{}' --quiet", model_, store)).code, 0);
  for (const std::string& command : {fmt::format("unpack '{}' -o '{}'", store, temp_ / "back"),
                                     fmt::format("pack '{}' -o '{}'", model_, temp_ / "x.sluice")}) {
    const Outcome refused = sluice(command + " --memory 1KiB");
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, HasSubstr("--memory: too little memory to "));
    EXPECT_THAT(refused.err, HasSubstr("expected 64.00 MiB or more, found 1.00 KiB; give more"));
    EXPECT_EQ(sluice(command + " --memory 64MiB --quiet").code, 0);
  }
}

TEST_F(StoreProgram, RefusesBadArguments) {
  const auto pack_with = [&](const std::string& flags) {
    return sluice(fmt::format("pack '{}' -o '{}' {}", model_, temp_ / "m.sluice", flags));
  };
  EXPECT_EQ(pack_with("--chunks 0").code, 2);
  EXPECT_EQ(pack_with("--chunks 257").code, 2);
  EXPECT_EQ(pack_with("--level 99").code, 2);
  EXPECT_EQ(pack_with("--codec brotli").code, 2);
  const Outcome native = pack_with("--codec native --level 1");
  EXPECT_EQ(native.code, 2);
  EXPECT_THAT(native.err, HasSubstr("native has no levels"));
  EXPECT_TRUE(fs::is_empty(temp_.path()));
  ASSERT_EQ(pack_with("--quiet").code, 0);
  EXPECT_THAT(pack_with("").err, HasSubstr("exists already"));
  EXPECT_THAT(sluice(fmt::format("pack '{}' -o '{}'", temp_ / "m.sluice", temp_ / "n.sluice")).err,
              HasSubstr("this is a packed store"));
  const Outcome nowhere = sluice(fmt::format("verify '{}'", temp_ / "nowhere"));
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_THAT(nowhere.err, HasSubstr("no such store"));
}

}  // namespace
}  // namespace sluice::store
