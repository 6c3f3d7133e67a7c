// Damaged packed matrices in kernels of a GPU. Oracle: the host's products.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "base/error.h"
#include "kernels/gpu/gpu_test_units.h"
#include "kernels/gpu/run_products-inl.h"
#include "kernels/guarded_plane.h"
#include "kernels/products/packed/packed_matmul.h"
#include "kernels/products/products.h"

namespace sluice::kernels::gpu {
namespace {

// One coded chunk and what it is multiplied with; of its exponents nothing outside the chunk can be read.
class GuardedChunk {
 public:
  GuardedChunk(std::mt19937_64& random, std::size_t rows, std::size_t columns) : shape_{rows, columns} {
    std::vector<std::byte> exponents(shape_.places());
    sign_mantissas_.resize(shape_.places());
    do {
      const std::vector<std::byte> words = encode(normal_floats(random, rows * columns), DType::kBF16);
      codec::split_tiles(words, shape_, exponents, sign_mantissas_);
      coded_ = codec::encode_native(exponents, shape_);
    } while (coded_.empty());
    const std::vector<float> x = normal_floats(random, columns);
    x_.resize(arranged_floats(columns));
    arrange_activations({}, x.data(), 1, columns, columns, x_.data());
  }
  std::vector<std::byte>& coded() { return coded_; }
  // Calls body() with each way of standing guard over the bytes as they are now.
  template <class Body>
  void each_guard(const Body& body) const {
    const PlaneRange all[] = {{0, coded_.size()}};
    for (const std::size_t edge : {std::size_t{0}, coded_.size()}) {
      const GuardedPlane guarded(coded_, all, edge);
      body(guarded.data());
    }
  }
  // The product; empty: damaged. Throws Error where the host's check of the chunk does.
  std::optional<std::vector<float>> on_host() const {
    std::vector<float> y(shape_.rows);
    const std::vector<codec::PlaneChunk> chunks = table();
    try {
      matmul({}, x_.data(), 1, weight(coded_.data(), chunks), {}, y.data(), y.size());
    } catch (const Error& error) {
      if (error.message().find("packed weights in memory") == std::string::npos) throw;
      return {};
    }
    return y;
  }
  std::optional<std::vector<float>> on(TestUnit unit, const std::byte* coded) const {
    std::vector<float> y(shape_.rows);
    const std::vector<codec::PlaneChunk> chunks = table();
    const codec::MatrixRef matrix = weight(coded, chunks);
    try {
      run_on(unit,
             op::Matmul{.x = floats_of(x_), .weight = &matrix, .y = floats_of(y), .y_stride = y.size()});
    } catch (const Error& error) {
      EXPECT_TRUE(is_damaged_weight(error)) << error.what();
      return {};
    }
    return y;
  }

 private:
  std::vector<codec::PlaneChunk> table() const { return {{0, coded_.size(), 0, shape_.places(), 0, true}}; }
  codec::MatrixRef weight(const std::byte* coded, const std::vector<codec::PlaneChunk>& chunks) const {
    const device::HostSpace& space = device::host_space();
    return {&codec::kFormatPacked,
            {shape_.rows, shape_.columns},
            {space.address(sign_mantissas_.data()), space.address(coded)},
            chunks};
  }

  codec::TileShape shape_;
  std::vector<std::byte> sign_mantissas_, coded_;
  std::vector<float> x_;
};

class GpuPacked : public OnUnits {};
INSTANTIATE_TEST_SUITE_P(Units, GpuPacked, test_units(), unit_of_test);

TEST_P(GpuPacked, SoundChunksAreReadWithinTheirBytes) {
  std::mt19937_64 random = test_random(11);
  for (int trial = 0; trial < 20; ++trial) {
    const GuardedChunk chunk(random, 1 + random() % 40, 64 + random() % 900);
    const auto expected = chunk.on_host();
    ASSERT_TRUE(expected.has_value());
    chunk.each_guard([&](const std::byte* coded) {
      const auto found = chunk.on(GetParam(), coded);
      ASSERT_TRUE(found.has_value());
      ASSERT_TRUE(same_bits(*expected, *found));
    });
  }
}

TEST_P(GpuPacked, DamagedChunksAreReadWithinTheirBytesAndReported) {
  std::mt19937_64 random = test_random(12);
  int reported = 0, refused = 0, harmless = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    GuardedChunk chunk(random, 1 + random() % 20, 64 + random() % 300);
    std::vector<std::byte>& bytes = chunk.coded();
    const std::size_t changes = 1 + random() % 3;
    for (std::size_t i = 0; i < changes; ++i) {
      // Half of the changes hit the head, where counts and places are.
      const std::size_t at =
          random() % (random() % 2 == 0 ? std::min<std::size_t>(64, bytes.size()) : bytes.size());
      bytes[at] = random() % 2 == 0 ? static_cast<std::byte>(random()) : bytes[at] ^ std::byte{1};
    }
    std::optional<std::vector<float>> expected;
    bool checked = true;
    try {
      expected = chunk.on_host();
    } catch (const Error&) {
      checked = false;  // the host's check of the whole chunk, which a warp does as far as its group goes
    }
    chunk.each_guard([&](const std::byte* coded) {
      const auto found = chunk.on(GetParam(), coded);
      if (!checked) return;
      ASSERT_EQ(expected.has_value(), found.has_value());
      if (found) {
        ASSERT_TRUE(same_bits(*expected, *found));
      }
    });
    ++(!checked ? refused : expected ? harmless : reported);
  }
  EXPECT_GT(reported, 100);
  EXPECT_GT(refused, 100);
  EXPECT_GT(harmless, 100);
}

TEST_P(GpuPacked, AChunkCutShortIsReported) {
  std::mt19937_64 random = test_random(13);
  for (int trial = 0; trial < 50; ++trial) {
    GuardedChunk chunk(random, 8 + random() % 20, 64 + random() % 300);
    chunk.coded().resize(random() % chunk.coded().size() / 64 * 64);
    if (chunk.coded().empty()) continue;
    chunk.each_guard([&](const std::byte* coded) { EXPECT_FALSE(chunk.on(GetParam(), coded).has_value()); });
  }
}

TEST_P(GpuPacked, ADamagedExpertIsReported) {
  std::mt19937_64 random = test_random(14);
  const Packed damaged = damaged_matrix(random, 24, 200);
  const codec::MatrixRef matrix = damaged.weight();
  const std::vector<float> x(3 * arranged_floats(200), 1.0f), y(3 * 24);
  const op::Matmul op{.x = floats_of(x), .tokens = 3, .weight = &matrix, .y = floats_of(y), .y_stride = 24};
  EXPECT_THROW(run_on(GetParam(), op), Error);
  const Packed sound = pack_matrix(random, 24, 200, false);
  const codec::MatrixRef other = sound.weight();
  op::Matmul next = op;
  next.weight = &other;
  EXPECT_NO_THROW(run_on(GetParam(), next));  // said once
}

}  // namespace
}  // namespace sluice::kernels::gpu
