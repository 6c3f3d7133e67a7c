// A residual is read as it was written, or not at all.
#include "engine/plan/gate_residual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/error_of.h"

namespace sluice::engine::gate_residual_test {
namespace {

using sluice::testing::error_of;
using ::testing::HasSubstr;

GateResidual made_up() {
  GateResidual residual;
  residual.identity = 0x0123456789abcdef;
  residual.text_sha256 = std::string(64, 'a');
  residual.tokens = 5000;
  residual.averaged = 4000;
  residual.window = 100;
  residual.windows = 10;
  residual.vectors = {.layers = 3, .width = 5, .values = {1, -2, .5f, 0, 1e-9f, 4, 5, 6, 7, -8}};
  residual.all = {.raw = {.5, .01}, .residual = {.625, .02}, .stream = {.75, .03}};
  residual.all.cosine_raw = {.8, std::numeric_limits<double>::infinity()};
  residual.layers = {residual.all, residual.all};
  residual.layers[1].above_raw = {-.125, .5};
  return residual;
}

GateResidual read(const std::string& file) {
  return read_residual(store::TableSidecar::of_bytes(std::as_bytes(std::span(file)), "r.bin"));
}

// What it holds, as bytes.
std::string bytes_of(const GateResidual& residual) { return ResidualTables(residual).file(); }

TEST(GateResidual, IsReadAsItWasWritten) {
  const GateResidual residual = made_up(), again = read(bytes_of(residual));
  EXPECT_EQ(again.identity, residual.identity);
  EXPECT_EQ(again.vectors.values, residual.vectors.values);
  EXPECT_EQ(again.vectors.of(1)[4], -8);
  EXPECT_EQ(again.layers.at(1).above_raw.mean, -.125);
  EXPECT_EQ(again.all.cosine_raw.error, std::numeric_limits<double>::infinity());
  EXPECT_EQ(bytes_of(again), bytes_of(residual));
  EXPECT_FALSE(again.better_than_stream());
}

TEST(GateResidual, ADamagedFileIsRefused) {
  const std::string file = bytes_of(made_up());
  for (std::size_t bytes = 0; bytes < file.size(); ++bytes)
    ASSERT_THROW(read(file.substr(0, bytes)), Error) << bytes;
  std::size_t refused = 0;
  for (std::size_t at = 0; at < file.size(); ++at)
    for (const int bit : {0, 3, 7}) {
      std::string flipped = file;
      flipped[at] = static_cast<char>(flipped[at] ^ 1 << bit);
      try {  // only the gaps between tables may differ, which nobody reads
        ASSERT_EQ(bytes_of(read(flipped)), file) << at << ", bit " << bit;
        ASSERT_EQ(file[at], '\0') << at;
      } catch (const Error&) {
        ++refused;
      }
    }
  EXPECT_GT(refused, 3 * (file.size() - 2 * 64));
}

TEST(GateResidual, AnotherKindShapeOrNumberIsRefused) {
  const GateResidual residual = made_up();
  const ResidualTables tables(residual);
  const std::string other = store::write_tables({"tokenizer", 1}, 0, tables.tables()),
                    newer = store::write_tables({"residual", 2}, 0, tables.tables());
  EXPECT_THAT(error_of([&] { read(other); }), HasSubstr("tokenizer"));
  EXPECT_THAT(error_of([&] { read(newer); }), HasSubstr("found version 2"));
  GateResidual odd = residual;
  odd.vectors.values.pop_back();
  EXPECT_THAT(error_of([&] { read(bytes_of(odd)); }), HasSubstr("10 floats"));
  odd = residual;
  odd.vectors.values[2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(error_of([&] { read(bytes_of(odd)); }), HasSubstr("finite"));
  odd = residual;
  odd.layers.pop_back();
  EXPECT_THAT(error_of([&] { read(bytes_of(odd)); }), HasSubstr("2 layers"));
}

TEST(GateResidual, AnotherModelsIsRefusedWithBoth) {
  const GateResidual residual = made_up();
  check_residual(residual, {residual.identity, 3, 5}, "r.bin");
  const std::string shape = error_of([&] { check_residual(residual, {residual.identity, 4, 5}, "r.bin"); });
  EXPECT_THAT(shape, HasSubstr("r.bin"));
  EXPECT_THAT(shape, HasSubstr("4 sparse layers of width 5"));
  EXPECT_THAT(shape, HasSubstr("3 of 5"));
  const std::string identity = error_of([&] { check_residual(residual, {1, 3, 5}, "r.bin"); });
  EXPECT_THAT(identity, HasSubstr("0000000000000001"));
  EXPECT_THAT(identity, HasSubstr("0123456789abcdef"));
}

}  // namespace
}  // namespace sluice::engine::gate_residual_test
