// Words that kernels of a GPU make of packed matrices, and products with them. Oracle: the words that the
// matrices were made of, the host's decoder and the host's products.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "base/error.h"
#include "codec/native/native_chunk.h"
#include "kernels/gpu/gpu_test_units.h"
#include "kernels/gpu/run_recover-inl.h"
#include "kernels/ops/host_ops.h"
#include "kernels/products/packed/packed_groups.h"
#include "kernels/products/packed/packed_matmul.h"
#include "kernels/products/products.h"

namespace sluice::kernels::gpu {
namespace {

// The words of a matrix, written over a copy of `fill` from byte `at` on.
std::vector<std::byte> words_of(TestUnit unit, const codec::MatrixRef& matrix,
                                std::span<const std::byte> fill, std::size_t at) {
  std::vector<std::byte> result(fill.size());
  if (unit == TestUnit::kCuda) {
    CudaBed& bed = *test_bed();
    const device::Address place = bed.put(fill);
    const auto clear = [&] {
      bed.get(place, result);
      bed.clear();
    };
    try {
      bed.run([&](UnitKernels&, const device::Access& access) { bed.recover(access, matrix, place + at); });
    } catch (const Error&) {
      clear();
      throw;
    }
    clear();
    return result;
  }
  // So that nothing can be written behind the last byte.
  GuardedBytes place(fill);
  OpenGate gate;
  const device::Access access(gate);
  LockstepLauncher launcher;
  recover_words(launcher, access, matrix, device::host_space().address(place.data() + at));
  launcher.finish(access);
  std::copy_n(place.data(), fill.size(), result.begin());
  return result;
}

// What the host's decoder makes of a packed matrix.
std::vector<std::byte> host_words(const codec::MatrixRef& matrix) {
  const std::size_t columns = matrix.shape.columns, rows = matrix.shape.rows;
  std::vector<std::byte> words(2 * rows * columns), scratch(codec::native_scratch_bytes((columns + 63) / 64));
  PackedGroups groups(matrix);
  for (std::size_t row = 0; row < rows; row += 8)
    EXPECT_TRUE(merge_group(codec::native_kernels(Isa::kScalar), groups.at(row / 8, scratch.data()),
                            std::min<std::size_t>(8, rows - row), columns, words.data() + 2 * row * columns));
  return words;
}

class GpuRecover : public OnUnits {};
INSTANTIATE_TEST_SUITE_P(Units, GpuRecover, test_units(), unit_of_test);

TEST_P(GpuRecover, WordsAreThoseOfTheHostAndNothingElseIsWritten) {
  std::mt19937_64 random = test_random(21);
  for (int trial = 0; trial < 150; ++trial) {
    const std::size_t rows = 1 + random() % 70;
    std::size_t columns = 1 + random() % 500;
    if (random() % 2 == 0) columns = (columns + 7) / 8 * 8;
    const TestMatrix matrix(random, codec::kFormatPacked, rows, columns, trial % 3 == 0, random() % 2);
    const std::vector<std::byte> expected = host_words(matrix.ref());
    // The end stands before the guard with a margin and without one, the begin at multiples of 16 and beside.
    const std::size_t behind = random() % 2 * 64, bytes = expected.size() + behind,
                      before = (32 - bytes % 16) % 16 + 16 + random() % 2 * 2;
    std::vector<std::byte> fill(before + bytes);
    for (std::byte& byte : fill) byte = static_cast<std::byte>(random());
    const std::vector<std::byte> found = words_of(GetParam(), matrix.ref(), fill, before);
    std::ranges::copy(expected, fill.begin() + static_cast<std::ptrdiff_t>(before));
    ASSERT_TRUE(std::ranges::equal(fill, found))
        << rows << " x " << columns << ", " << before << " bytes before, seed " << test_seed();
  }
}

TEST_P(GpuRecover, WordsAreThoseThatWerePacked) {
  std::mt19937_64 random = test_random(22);
  for (int trial = 0; trial < 40; ++trial) {
    const Packed packed = pack_matrix(random, 1 + random() % 40, 1 + random() % 300, trial % 2 == 0);
    const std::vector<std::byte> none(packed.words.size());
    ASSERT_EQ(words_of(GetParam(), packed.weight(), none, 0), packed.words) << "seed " << test_seed();
  }
}

TEST_P(GpuRecover, DamagedChunksAreReported) {
  std::mt19937_64 random = test_random(23);
  for (int trial = 0; trial < 30; ++trial) {
    const std::size_t rows = 8 + random() % 40, columns = 64 + random() % 300;
    const Packed damaged = damaged_matrix(random, rows, columns), sound = pack_matrix(random, 24, 200, false);
    const std::vector<std::byte> none(damaged.words.size()), other(sound.words.size());
    try {
      static_cast<void>(words_of(GetParam(), damaged.weight(), none, 0));
      FAIL() << rows << " x " << columns << ", seed " << test_seed();
    } catch (const Error& error) {
      EXPECT_TRUE(is_damaged_weight(error)) << error.what();
    }
    EXPECT_EQ(words_of(GetParam(), sound.weight(), other, 0), sound.words);  // said once
  }
}

// The room of a launcher has the words behind a product of many tokens, and is untouched behind one of few.
TEST(GpuRecoverRoom, ProductsOfManyTokensAreMadeOfWordsThere) {
  std::mt19937_64 random = test_random(27);
  const TestMatrix matrix(random, codec::kFormatPacked, 30, 200, false);
  const std::vector<std::byte> words = host_words(matrix.ref()), none(words.size());
  for (const std::size_t tokens : {kRecoverTokens - 1, kRecoverTokens}) {
    const std::vector<float> x(tokens * arranged_floats(200), 1.0f), y(tokens * 30);
    OpenGate gate;
    const device::Access access(gate);
    LockstepLauncher launcher(kWithRoom);
    run(launcher, access,
        op::Matmul{
            .x = floats_of(x), .tokens = tokens, .weight = &matrix.ref(), .y = floats_of(y), .y_stride = 30});
    launcher.finish(access);
    EXPECT_TRUE(
        std::ranges::equal(launcher.room(access).first(words.size()), tokens < kRecoverTokens ? none : words))
        << tokens << " tokens, seed " << test_seed();
  }
}

// A product of a damaged matrix that has room for its words reports it, too.
TEST_P(GpuRecover, ProductsReportDamagedChunks) {
  std::mt19937_64 random = test_random(24);
  const Packed damaged = damaged_matrix(random, 24, 200), sound = pack_matrix(random, 24, 200, false);
  const std::vector<float> x(kRecoverTokens * arranged_floats(200), 1.0f), y(kRecoverTokens * 24);
  const codec::MatrixRef bad = damaged.weight(), good = sound.weight();
  op::Matmul op{
      .x = floats_of(x), .tokens = kRecoverTokens, .weight = &bad, .y = floats_of(y), .y_stride = 24};
  EXPECT_THROW(run_on(GetParam(), op, kWithRoom), Error);
  op.weight = &good;
  EXPECT_NO_THROW(run_on(GetParam(), op, kWithRoom));
}

// The words of some matrices have room, those of others have not; some are too wide to be multiplied as
// words.
TEST_P(GpuRecover, ProductsHaveTheHostsBitsWithRoomAndWithout) {
  std::mt19937_64 random = test_random(25);
  for (int trial = 0; trial < 40; ++trial) {
    const std::size_t rows = 1 + random() % 300,
                      columns = trial % 5 == 0 ? 1 + random() % 400 : 8 * (1 + random() % 70);
    const std::size_t tokens = kRecoverTokens - 1 + random() % 30;
    const TestMatrix weight(random, codec::kFormatPacked, rows, columns, trial % 3 == 0, random() % 3 == 0);
    const std::vector<float> x = normal_floats(random, tokens * columns);
    const std::vector<float> bias = random() % 2 == 0 ? std::vector<float>() : normal_floats(random, rows);
    std::vector<float> arranged(tokens * arranged_floats(columns)), expected(tokens * rows);
    arrange_for({}, weight.ref(), x.data(), tokens, columns, arranged.data());
    const auto op = [&](const std::vector<float>& y) {
      return op::Matmul{.x = floats_of(arranged),
                        .tokens = tokens,
                        .weight = &weight.ref(),
                        .bias = vector_of(bias),
                        .y = floats_of(y),
                        .y_stride = rows};
    };
    Context context;
    context.isa = best_isa();
    HostOps(context).run(op(expected));
    for (const bool room : {true, false}) {
      const std::vector<float> found(tokens * rows, -1.0f);
      run_on(GetParam(), op(found), room ? kWithRoom : GpuKernelOptions{});
      ASSERT_TRUE(same_bits(expected, found))
          << rows << " x " << columns << ", " << tokens << " tokens, " << (room ? "room" : "no room");
    }
  }
}

// MLPs of one operation: some with many tokens, some with few; together their words have no room.
TEST_P(GpuRecover, MlpsHaveTheHostsBitsWithRoomAndWithout) {
  std::mt19937_64 random = test_random(26);
  constexpr std::array kForms = {GatingForm::kSilu, GatingForm::kRelu, GatingForm::kClamped,
                                 GatingForm::kClampedPairs};
  for (int trial = 0; trial < 24; ++trial) {
    const GatingForm form = kForms[static_cast<std::size_t>(trial) % kForms.size()];
    const GatingRow& row = gating_row(form);
    const std::size_t d = 8 * (1 + random() % 30), width = 8 * (1 + random() % 20);
    struct One {
      std::vector<TestMatrix> matrices;
      std::vector<float> arranged, inner, out, up_bias;
      op::Mlp op;
    };
    std::vector<std::unique_ptr<One>> all;
    std::vector<op::Mlp> ops;
    for (std::size_t i = 0; i < 1 + random() % 8; ++i) {
      all.push_back(std::make_unique<One>());
      One& one = *all.back();
      op::Mlp& op = one.op;
      op.tokens = random() % 3 == 0 ? 1 + random() % 8 : kRecoverTokens + random() % 20;
      for (std::size_t rows : {row.gate ? width : 0, width * row.up_rows})
        if (rows != 0) one.matrices.emplace_back(random, codec::kFormatPacked, rows, d, false);
      one.matrices.emplace_back(random, codec::kFormatPacked, d, width, false, random() % 3 == 0);
      if (row.gate) op.gate = one.matrices.front().ref();
      op.up = one.matrices[one.matrices.size() - 2].ref();
      op.down = one.matrices.back().ref();
      op.gating = {form, {.limit = .7f, .alpha = 1.702f}};
      one.up_bias = normal_floats(random, width * row.up_rows);
      op.up_bias = vector_of(one.up_bias);
      one.arranged.resize(op.tokens * arranged_floats(d));
      one.inner.resize(op.tokens * arranged_floats(width));
      one.out.resize(op.tokens * d);
      const std::vector<float> x = normal_floats(random, op.tokens * d);
      arrange_for({}, op.up, x.data(), op.tokens, d, one.arranged.data());
      op.inputs.fill(floats_of(one.arranged));
      op.inner = floats_of(one.inner);
      op.out = floats_of(one.out);
      ops.push_back(op);
    }
    std::vector<std::vector<float>> expected;
    for (const auto& one : all) {
      std::vector<float> gate_room(one->op.tokens * width), up_room(one->op.tokens * width * row.up_rows);
      op::Mlp here = one->op;
      here.gate_room = floats_of(gate_room);
      here.up_room = floats_of(up_room);
      Context context;
      context.isa = best_isa();
      HostOps(context).run(here);
      expected.push_back(one->out);
    }
    for (const bool room : {true, false}) {
      for (const auto& one : all) std::ranges::fill(one->out, -1.0f);
      run_on(GetParam(), std::span<const op::Mlp>(ops), room ? kWithRoom : GpuKernelOptions{});
      for (std::size_t i = 0; i < all.size(); ++i)
        ASSERT_TRUE(same_bits(expected[i], all[i]->out))
            << width << " x " << d << ", " << all[i]->op.tokens << " tokens, form " << static_cast<int>(form)
            << (room ? ", room" : ", no room");
    }
  }
}

}  // namespace
}  // namespace sluice::kernels::gpu
