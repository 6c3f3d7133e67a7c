// Sizes of stored matrices come from the table of formats (codec/matrix_format.h). An element's size is
// multiplied only where something else than a stored matrix is measured; this test holds the list.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "source_text.h"

namespace sluice {
namespace {

// A file, and why it may.
const std::map<std::string, std::string> kMay = {
    {"apps/sluice/commands/inspect.cc", "compares what is stored with the tensors of the source"},
    {"src/base/dtype.cc", "defines the sizes"},
    {"src/base/dtype.h", "declares them"},
    {"src/codec/slices/int8_matrix.cc", "reads the words that are quantised"},
    {"src/codec/slices/sliced_matrix.cc", "reads the words that are quantised"},
    {"src/engine/session/kv_rows.cc", "sizes the key/value cache"},
    {"src/engine/session/prefix_bench_testing.h", "compares rows of the key/value cache"},
    {"src/kernels/attention/attention.cc", "finds rows of the key/value cache"},
    {"src/kernels/ops/floats.h", "finds rows of the key/value cache"},
    {"src/kernels/check/check_data.cc", "makes the words that kernels are checked with"},
    {"src/kernels/check/self_check.cc", "finds the values of a key/value cache"},
    {"src/model/synth/synth_values.h", "sizes tensors that it makes up, which are no stored matrices yet"},
    {"src/store/pack/rounded_copy.cc", "finds the words that it rounds"},
    {"src/store/tensor_list.cc", "sizes ranges of safetensors tensors, of any type"},
};

bool is_code(const std::filesystem::path& path) {
  const std::string stem = path.stem(), name = path.filename();
  return testing::is_source(path) && !stem.ends_with("_test") && !stem.ends_with("_fuzz") &&
         !stem.ends_with("test_data") && !stem.ends_with("_fixture") && name != "testing.h";
}

TEST(ElementSizes, AreLookedForInSourcesOfEveryKind) {
  for (const char* name : {"a.h", "a.cc", "a_cuda.cu", "a.cuh"}) EXPECT_TRUE(is_code(name)) << name;
  for (const char* name : {"a_test.cc", "testing.h", "a.md"}) EXPECT_FALSE(is_code(name)) << name;
}

TEST(ElementSizes, AreMultipliedOnlyWhereNoStoredMatrixIsMeasured) {
  std::set<std::string> used;
  testing::each_source({"src", "apps"}, is_code, [&](const std::string& path, const std::string& text) {
    if (text.find("dtype_bytes(") == std::string::npos) return;
    EXPECT_TRUE(kMay.contains(path)) << path << " multiplies the size of an element: ask a "
                                     << "codec::MatrixFormat for the bytes of a matrix, or say in "
                                     << "tests/element_size_test.cc what else it is";
    used.insert(path);
  });
  for (const auto& [file, why] : kMay) EXPECT_TRUE(used.contains(file)) << file << " no longer does";
}

// How an element's size, or that of its parts, hides in a line. In `codec` and `kernels` nothing is hidden:
// formats, and what computes with them, are written there.
struct Hidden {
  const char* what;
  std::regex pattern;
  const char* example;
  std::map<std::string, std::string> may;  // a file, and what it multiplies
};

const std::string kNoun =
    "(count|first|rows?|first_row|columns|elements|words|words_read|weights|places|length)";
const std::string kPath = R"((\(?static_cast<\w+>\()?([A-Za-z_]+(\.|->))*)";

const std::vector<Hidden>& hidden() {
  static const std::vector<Hidden> all = {
      {"bytes of elements",
       std::regex(R"(\b[2-9](\.0)? \* )" + kPath + kNoun + R"(\b(?!_|\())"),
       "static_cast<Bytes>(2 * model.weights)",
       {{"src/engine/forward/unit/measure_device.cc", "a number of experts"},
        {"src/experts/cache/activation_matrix.cc", "a square"},
        {"src/lab/machine/sliced_model.cc", "operations: a product and a sum for each weight"}}},
      {"bytes of elements",
       std::regex("\\b" + kNoun + R"( \* [2-9](\.0)?[^0-9.])"),
       "is_split() ? count * 5 : length",
       {}},
      {"bytes of some elements",
       std::regex(R"(\b2 \* \(\w+ \? )" + kPath + kNoun + "\\b"),
       "2 * (whole ? entropy.words : kSampledWords)",
       {}},
      {"bits of an element",
       std::regex(R"((\b[Bb]its(\.\w+(\(\))?)?|->(high|low)) / 8\b|\b8(\.0)? \* sizeof)"),
       "static_cast<Bytes>(weights * bits / 8)",
       {{"src/lab/machine/weight_bytes.h", "weights that no file holds"}}},
      {"bytes of an element",
       std::regex(R"(sizeof\((std::)?u?int16_t\))"),
       "8.0 * sizeof(std::uint16_t) * expert",
       {}},
      {"bytes of floats",
       std::regex(R"(sizeof\(float\))"),
       "round_up(elements_in(spec) * sizeof(float), 64)",
       {{"src/engine/engine_budget.cc", "scores of attention"},
        {"src/engine/forward/moe_experts.cc", "inputs of experts"},
        {"src/engine/forward/unit/device_unit.cc", "activations on a device"},
        {"src/engine/forward/unit/measure_device.cc", "a token's row of activations"},
        {"src/engine/forward/common/workspace.cc", "activations"},
        {"src/engine/session/encoder_memory.cc", "rows of the residual stream"},
        {"src/engine/session/kv_rows.cc", "scales of the key/value cache"},
        {"src/eval/reference_windows.cc", "logits"},
        {"src/eval/split_budget.cc", "logits"},
        {"src/lab/machine/hybrid_machine.cc", "a token's row of activations"}}},
      {"bytes of published numbers",
       std::regex(R"(\b[0-9]+\.0( \* [0-9]+)+ \* 2\b)"),
       ".kv_bytes = 27.0 * 576 * 2,",
       {}},
      {"words and planes",
       std::regex(R"(chunks > 0 \? 2 : 1\b|\.u \*= 2\b)"),
       "return tensors * fetch.u * (fetch.chunks > 0 ? 2 : 1);",
       {}},
      {"bytes of codes",
       std::regex(R"(\b(code|strip)_bytes\(|/ codec::kCellColumns)"),
       "length + matrix.code_bytes(9)",
       {}},
  };
  return all;
}

TEST(ElementSizes, AreFoundWhereTheyHide) {
  for (const Hidden& one : hidden()) EXPECT_TRUE(std::regex_search(one.example, one.pattern)) << one.example;
  const std::regex& factor = hidden()[0].pattern;
  EXPECT_TRUE(std::regex_search("return 2 * chunk.count;", factor));
  EXPECT_TRUE(std::regex_search("words + 2 * row * columns", factor));
  EXPECT_TRUE(std::regex_search("piece.first().offset + 2 * first, 2 * words", factor));
  EXPECT_TRUE(std::regex_search("/ (2 * static_cast<double>(facts.words))", factor));
  EXPECT_TRUE(std::regex_search("5 * run.length", factor));
  EXPECT_TRUE(std::regex_search("count * (job.options.slices->high / 8.0 + 3.0)", hidden()[3].pattern));
  EXPECT_FALSE(std::regex_search("12 * sequences.size()", factor));
}

TEST(ElementSizes, StandInNoFactor) {
  std::set<std::string> used;
  const std::size_t files =
      testing::each_source({"src", "apps"}, is_code, [&](const std::string& path, const std::string& text) {
        if (path.starts_with("src/codec/") || path.starts_with("src/kernels/")) return;
        std::istringstream lines(text);
        std::size_t number = 0;
        for (std::string line; std::getline(lines, line);) {
          ++number;
          const std::string code = line.substr(0, line.find("//"));
          if (code.find_first_of("*/") == std::string::npos && code.find("_bytes(") == std::string::npos &&
              code.find("sizeof(") == std::string::npos)
            continue;  // a regex for each line of the program would take seconds
          for (const Hidden& one : hidden()) {
            std::smatch found;
            if (!std::regex_search(code, found, one.pattern)) continue;
            EXPECT_TRUE(one.may.contains(path))
                << path << ':' << number << " has the " << one.what << " in \"" << found[0].str()
                << "\": ask a codec::MatrixFormat, or say in tests/element_size_test.cc what else it is";
            used.insert(path);
          }
        }
      });
  EXPECT_GT(files, 700u);
  for (const Hidden& one : hidden())
    for (const auto& [file, why] : one.may) EXPECT_TRUE(used.contains(file)) << file << " no longer does";
}

}  // namespace
}  // namespace sluice
