#include "store/pack/rounded_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "base/float16.h"
#include "store/pack/testing.h"

namespace sluice::store {
namespace {

using namespace testing;  // NOLINT: the helpers of testing.h
using ::testing::HasSubstr;

double value_at(const std::string& bytes, std::uint64_t element) {
  std::uint16_t word = 0;
  std::memcpy(&word, bytes.data() + 2 * element, 2);
  return bf16_to_float(word);
}

// The tensors of a file, in its order.
std::map<std::string, std::string> tensors_of(const std::string& file, const TinyModel& model) {
  std::map<std::string, std::string> found;
  std::uint64_t header = 0;
  std::memcpy(&header, file.data(), 8);
  std::size_t at = 8 + header;
  for (const TestTensor& tensor : tiny_tensors(model)) {
    found[tensor.name] = file.substr(at, tensor.bytes.size());
    at += tensor.bytes.size();
  }
  EXPECT_EQ(at, file.size());
  return found;
}

TEST(RoundedCopy, RoundsTheExpertsAndNothingElse) {
  const TinyModel model{.hidden = 40, .width = 33};
  for (const codec::QuantiserVariant& variant : codec::quantiser_variants()) {
    SCOPED_TRACE(variant.name);
    const TempDirectory temp;
    write_tiny_model(temp / "source", model);
    write_file(temp / "source/sub/notes.txt", "kept");
    write_rounded_copy(temp / "source", temp / "copy", tiny_plan(model), variant, {6, 3}, {.threads = 2});
    EXPECT_FALSE(fs::exists(temp / "copy.partial"));
    auto before = read_tree(temp / "source"), after = read_tree(temp / "copy");
    const auto found = tensors_of(after["model.safetensors"], model);
    before.erase("model.safetensors");
    after.erase("model.safetensors");
    EXPECT_EQ(before, after);
    for (const TestTensor& tensor : tiny_tensors(model)) {
      const std::string& bytes = found.at(tensor.name);
      if (tensor.name.find("experts") == std::string::npos) {
        EXPECT_EQ(bytes, tensor.bytes) << tensor.name;
        continue;
      }
      const std::uint64_t columns = tensor.shape[1];
      for (std::uint64_t at = 0; at < tensor.shape[0] * columns;) {
        const std::uint64_t count = std::min<std::uint64_t>(32, columns - at % columns);
        std::vector<double> weights, rounded(count);
        for (std::uint64_t i = 0; i < count; ++i) weights.push_back(value_at(tensor.bytes, at + i));
        variant.apply(weights, {6, 3}, rounded);
        for (std::uint64_t i = 0; i < count; ++i)
          ASSERT_EQ(value_at(bytes, at + i), bf16_to_float(float_to_bf16(static_cast<float>(rounded[i]))));
        at += count;
      }
    }
  }
}

// Matrices of several jobs of rows, the last of them shorter, as one job of each would leave them.
TEST(RoundedCopy, LongMatricesAreRoundedAsRowsByThemselvesAre) {
  const TinyModel model{.layers = 1, .experts = 1, .hidden = 1500, .width = 1601};
  const TempDirectory temp;
  write_tiny_model(temp / "source", model);
  const codec::QuantiserVariant& variant = codec::find_quantiser_variant("amat");
  std::string first;
  for (const auto& [memory, threads] : {std::pair{Bytes{1}, 1u}, {256 * kMiB, 4u}}) {
    write_rounded_copy(temp / "source", temp / "copy", tiny_plan(model), variant, {8, 4},
                       {.threads = threads, .memory = memory});
    const std::string copy = read_file(temp / "copy/model.safetensors");
    const auto found = tensors_of(copy, model);
    for (const TestTensor& tensor : tiny_tensors(model)) {
      const std::string& bytes = found.at(tensor.name);
      if (tensor.name.find("experts") == std::string::npos) {
        EXPECT_EQ(bytes, tensor.bytes) << tensor.name;
        continue;
      }
      const std::uint64_t columns = tensor.shape[1];
      std::vector<double> weights(32), rounded(32);
      for (std::uint64_t row = 0; row < tensor.shape[0]; ++row) {
        const std::uint64_t at = row * columns + row % (columns / 32) * 32;
        for (std::uint64_t i = 0; i < 32; ++i) weights[i] = value_at(tensor.bytes, at + i);
        variant.apply(weights, {8, 4}, rounded);
        for (std::uint64_t i = 0; i < 32; ++i)
          ASSERT_EQ(value_at(bytes, at + i), bf16_to_float(float_to_bf16(static_cast<float>(rounded[i]))))
              << tensor.name << ", row " << row;
      }
    }
    EXPECT_TRUE(first.empty() || copy == first);
    first = copy;
    fs::remove_all(temp / "copy");
  }
}

TEST(RoundedCopy, LeavesNothingBehindWhenItFails) {
  const TempDirectory temp;
  write_tiny_model(temp / "source", {});
  const codec::QuantiserVariant& variant = codec::find_quantiser_variant("amat");
  const auto attempt = [&](const PackPlan& plan, const RoundedCopyOptions& options) -> std::string {
    try {
      write_rounded_copy(temp / "source", temp / "copy", plan, variant, {8, 4}, options);
    } catch (const Error& error) {
      EXPECT_FALSE(fs::exists(temp / "copy"));
      EXPECT_FALSE(fs::exists(temp / "copy.partial"));
      return error.what();
    }
    return "no error";
  };
  int polls = 0;
  EXPECT_THAT(attempt(tiny_plan({}), {.interrupted = [&] { return ++polls == 5; }}),
              HasSubstr("interrupted"));
  PackPlan other = tiny_plan({});
  other.experts[0].pieces[0] = {"layers.0.norm", 0, 24};  // F32, but random bits
  const std::string error = attempt(other, {});
  EXPECT_TRUE(error == "no error" || error.find("layers.0.norm") != std::string::npos) << error;
  fs::remove_all(temp / "copy");
  other.experts[0].pieces[0] = {"scalar", 0, 1};
  EXPECT_NE(attempt(other, {}), "no error");
  fs::create_directories(temp / "copy");
  EXPECT_THROW(write_rounded_copy(temp / "source", temp / "copy", tiny_plan({}), variant, {8, 4}, {}), Error);
}

}  // namespace
}  // namespace sluice::store
