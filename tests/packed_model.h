// Shared by tests that run the built program on a packed store of the bundled model.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "base/files/scratch_directory.h"
#include "base/json/json.h"
#include "bundled_model.h"

namespace sluice::program {

// A directory that the tests of a suite share, with a store of the bundled model in it. The tests leave the
// store as it is; they make what they change beside it.
class PackedModelTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_.emplace();
    ASSERT_EQ(run("pack " + kModel + " -o " + store() + " --quiet").code, 0);
  }
  static void TearDownTestSuite() { directory_.reset(); }
  static std::string store() { return directory_->file("fable.sluice"); }
  // A store whose experts can be computed with as they are packed: random weights, matrices of 128 columns
  // or a multiple, and the bundled model's tokenizer.
  static std::string packable() {
    const std::string path = directory_->file("packable.sluice");
    if (std::filesystem::exists(path)) return path;
    Json config = Json::parse(content_of(kModel + "/config.json"));
    config["moe_intermediate_size"] = 128;
    const std::string made = directory_->file("packable");
    std::ofstream(directory_->file("packable.json")) << config;
    EXPECT_EQ(run("synth " + directory_->file("packable.json") + " -o " + made + " --quiet").code, 0);
    for (const char* name : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"})
      std::filesystem::copy_file(kModel + "/" + name, made + "/" + name,
                                 std::filesystem::copy_options::skip_existing);
    EXPECT_EQ(run("pack " + made + " -o " + path + " --quiet").code, 0);
    return path;
  }
  // A store of the bundled model in slices.
  static std::string sliced() {
    const std::string path = file("sliced.sluice");
    if (std::filesystem::exists(path)) return path;
    EXPECT_EQ(run("pack " + kModel + " -o " + path + " --slices 8/4 --quiet").code, 0);
    return path;
  }
  // Flags of this many prompts, which begin with another one for each seed.
  static std::string prompts(std::size_t count, int seed) {
    const char* const all[] = {"The sea was calm, and the old man", "A fox went out",
                               "It was the best house in the village, with a red roof", "Once upon a time"};
    std::string flags;
    for (std::size_t i = 0; i < count; ++i)
      flags += " -p '" + std::string(all[(i + static_cast<std::size_t>(seed)) % std::size(all)]) + "'";
    return flags;
  }
  static std::string directory() { return directory_->path(); }
  static std::string file(const std::string& name) { return directory_->file(name); }

 private:
  static inline std::optional<sluice::testing::ScratchDirectory> directory_;
};

}  // namespace sluice::program
