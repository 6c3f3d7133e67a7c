// Sizes of stored matrices come from the table of formats (codec/matrix_format.h). An element's size is
// multiplied only where something else than a stored matrix is measured; this test holds the list.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

namespace sluice {
namespace {

namespace fs = std::filesystem;
const fs::path kRoot = SLUICE_SOURCE_DIR;

// A file, or a folder with all below it, and why it may.
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
    {"src/store/check", "checks the ranges of safetensors tensors"},
    {"src/store/pack", "copies ranges of safetensors tensors"},
    {"src/store/source/directory_checkpoint.cc", "finds ranges of safetensors tensors"},
    {"src/store/source/safetensors.cc", "reads the headers of safetensors files"},
};

std::string owner_of(std::string path) {
  for (; !path.empty(); path = path.substr(0, path.rfind('/') == std::string::npos ? 0 : path.rfind('/')))
    if (kMay.contains(path)) return path;
  return {};
}

TEST(ElementSizes, AreMultipliedOnlyWhereNoStoredMatrixIsMeasured) {
  std::set<std::string> used;
  for (const char* folder : {"src", "apps"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      const std::string path = fs::relative(entry.path(), kRoot), stem = entry.path().stem();
      const std::string extension = entry.path().extension();
      if (extension != ".cc" && extension != ".h") continue;
      if (stem.ends_with("_test") || stem.ends_with("_fuzz") || stem.ends_with("test_data")) continue;
      std::ifstream file(entry.path());
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      if (text.find("dtype_bytes(") == std::string::npos) continue;
      const std::string owner = owner_of(path);
      EXPECT_FALSE(owner.empty())
          << path << " multiplies the size of an element: ask a codec::MatrixFormat for "
          << "the bytes of a matrix, or say in tests/element_size_test.cc what else it is";
      used.insert(owner);
    }
  }
  for (const auto& [owner, why] : kMay) EXPECT_TRUE(used.contains(owner)) << owner << " no longer does";
}

}  // namespace
}  // namespace sluice
