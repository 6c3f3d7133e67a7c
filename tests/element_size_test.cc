// Sizes of stored matrices come from the table of formats (codec/matrix_format.h). An element's size is
// multiplied only where something else than a stored matrix is measured; this test holds the list.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>

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
    {"src/kernels/attention/attention.cc", "finds rows of the key/value cache"},
    {"src/kernels/ops/floats.h", "finds rows of the key/value cache"},
    {"src/kernels/check/self_check.cc", "makes the words that it checks kernels with"},
    {"src/store/pack/rounded_copy.cc", "finds the words that it rounds"},
    {"src/store/tensor_list.cc", "sizes ranges of safetensors tensors, of any type"},
};

bool is_code(const std::filesystem::path& path) {
  const std::string stem = path.stem(), name = path.filename();
  if (path.extension() != ".cc" && path.extension() != ".h") return false;
  return !stem.ends_with("_test") && !stem.ends_with("_fuzz") && !stem.ends_with("test_data") &&
         !stem.ends_with("_fixture") && name != "testing.h";
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

// BF16 words hidden in a factor: `2 * rows * columns`.
TEST(ElementSizes, StandInNoFactor) {
  const std::regex factor(R"(\b2 \* ([a-z_]+(\.|->))*(count|rows|columns|elements|first|first_row|row)\b)");
  ASSERT_TRUE(std::regex_search("return 2 * chunk.count;", factor));
  ASSERT_TRUE(std::regex_search("words + 2 * row * columns", factor));
  const std::size_t files =
      testing::each_source({"src/store", "src/fetch", "src/engine", "src/model", "src/eval"}, is_code,
                           [&](const std::string& path, const std::string& text) {
                             std::smatch found;
                             EXPECT_FALSE(std::regex_search(text, found, factor)) << path << ": " << found[0];
                           });
  EXPECT_GT(files, 200u);
}

}  // namespace
}  // namespace sluice
