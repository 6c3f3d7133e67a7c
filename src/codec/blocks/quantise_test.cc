// Numbers as blocks, and back by the formats' own definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "codec/blocks/quantise.h"
#include "device/space.h"

namespace sluice::codec {
namespace {

struct Loss {
  const MatrixFormat* format;
  double most;  // the error's deviation at most, as a share of that of the numbers
};
const Loss kLosses[] = {{&kFormatQ80, .006}, {&kFormatQ6K, .025}, {&kFormatQ51, .045},  {&kFormatQ50, .05},
                        {&kFormatQ5K, .05},  {&kFormatQ41, .09},  {&kFormatQ40, .1},    {&kFormatQ4K, .1},
                        {&kFormatIq4Nl, .1}, {&kFormatIq4Xs, .1}, {&kFormatMxfp4, .15}, {&kFormatQ3K, .22},
                        {&kFormatQ2K, .45}};

std::vector<float> back(const MatrixFormat& format, const std::vector<float>& numbers) {
  std::vector<std::byte> blocks(format.plane_bytes({1, numbers.size()}, 0), std::byte{0xee});
  quantise_row(format, numbers.data(), numbers.size(), blocks.data());
  const MatrixRef matrix{&format, {1, numbers.size()}, {device::host_space().address(blocks.data())}};
  EXPECT_NO_THROW(format.check(matrix));
  std::vector<float> found(numbers.size());
  row_to_float(matrix, 0, found.data());
  return found;
}

double share_of_error(const std::vector<float>& numbers, const std::vector<float>& found) {
  double error = 0, power = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    error += std::pow(found[i] - numbers[i], 2);
    power += std::pow(numbers[i], 2);
  }
  return std::sqrt(error / power);
}

TEST(QuantiseRow, LosesAsMuchAsTheFormatMust) {
  for (const auto& [format, most] : kLosses) {
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
      SCOPED_TRACE(std::string(format->name) + ", seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      std::normal_distribution<float> normal(0, .02F);
      std::vector<float> numbers(4096);
      for (float& number : numbers) number = normal(random);
      const double share = share_of_error(numbers, back(*format, numbers));
      EXPECT_LT(share, most);
      EXPECT_GT(share, most / 4);
    }
  }
}

TEST(QuantiseRow, KeepsTheLargestNumberOfABlockNearly) {
  for (const auto& [format, most] : kLosses)
    for (const float sign : {1.F, -1.F}) {
      SCOPED_TRACE(std::string(format->name));
      std::vector<float> numbers(256, 0.F);
      numbers[37] = sign * .75F;
      const std::vector<float> found = back(*format, numbers);
      EXPECT_NEAR(found[37], numbers[37], .06);
      EXPECT_NEAR(found[200], 0, 1e-6);
    }
}

TEST(QuantiseRow, ZerosStayZeros) {
  for (const auto& [format, most] : kLosses)
    for (const float number : back(*format, std::vector<float>(512, 0.F)))
      EXPECT_EQ(number, 0) << format->name;
}

TEST(QuantiseRow, KnowsWhichFormatsItCanWrite) {
  for (const MatrixFormat* const format : matrix_formats()) {
    const bool gguf = std::ranges::any_of(kLosses, [&](const Loss& loss) { return loss.format == format; });
    EXPECT_EQ(can_quantise(*format), gguf) << format->name;
  }
}

}  // namespace
}  // namespace sluice::codec
