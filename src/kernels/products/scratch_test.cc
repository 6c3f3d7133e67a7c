// Products in a scratch that is as small as it may be have the bits of those with memory of their own,
// whatever the weights, the instruction set and the rounding; threads do not share rooms.
#include "kernels/products/scratch.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/machine/thread_pool.h"
#include "codec/slices/int8_matrix.h"
#include "kernels/products/packed/packed_test_data.h"
#include "kernels/products/products.h"
#include "kernels/products/vector_products.h"
#include "kernels/products/words/matmul.h"
#include "kernels/test_data.h"

namespace sluice::kernels {
namespace {

// Scratch and its memory, of which every byte after the last is another's.
class Given {
 public:
  Given(const Context& ctx, const ScratchShape& shape)
      : bytes_(Scratch::bytes(ctx, shape)), memory_(bytes_ + 128, std::byte{0x5a}) {
    scratch_ = Scratch(ctx, shape, base());
  }
  const Scratch* get() const { return &scratch_; }
  Bytes bytes() const { return bytes_; }
  bool kept() const {
    const std::byte* const end = memory_.data() + memory_.size();
    return std::all_of<const std::byte*>(base() + bytes_, end,
                                         [](std::byte byte) { return byte == std::byte{0x5a}; });
  }

 private:
  std::byte* base() const {
    auto* const data = const_cast<std::byte*>(memory_.data());
    return data + (-reinterpret_cast<std::uintptr_t>(data) & 63);
  }
  Bytes bytes_;
  std::vector<std::byte> memory_;
  Scratch scratch_;
};

struct Weights {
  std::string name;
  codec::MatrixRef view;
  ScratchShape needs;  // tokens and columns are set by the test
};

TEST(ScratchTest, ProductsHaveTheSameBitsInAScratchOfTheirSize) {
  std::mt19937_64 random = test_random(91);
  ThreadPool pool(3);
  std::size_t products = 0;
  constexpr std::pair<std::size_t, std::size_t> kShapes[] = {{1, 64}, {40, 200}, {131, 72}, {33, 520}};
  for (const auto& [rows, columns] : kShapes) {
    const std::vector<float> numbers = normal_floats(random, rows * columns);
    std::vector<std::vector<std::byte>> words;
    std::vector<Weights> all;
    for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
      words.push_back(encode(numbers, dtype));
      all.push_back({std::string(dtype_name(dtype)),
                     codec::word_matrix(words.back().data(), dtype, rows, columns),
                     {.wide = dtype != DType::kBF16}});
    }
    const Packed packed = pack_numbers(random, rows, columns, numbers);
    all.push_back({"packed", packed.weight(), {.packed = true, .words = false}});
    const codec::Int8Shape shape{{rows, columns}};
    std::vector<std::byte> codes(shape.bytes());
    codec::quantise_int8(std::as_bytes(std::span(numbers)), DType::kF32, shape, codes.data(),
                         codes.data() + shape.scales_offset());
    all.push_back({"int8", codec::int8_ref({rows, columns}, codes.data()), {.coded = true, .words = false}});
    for (const Isa isa : available_isas())
      for (const Products rounding : {Products::kExact, Products::kTiles, Products::kPairs})
        for (const ActivationForm form : {ActivationForm::kF32, ActivationForm::kInt8})
          for (const std::size_t tokens : {1u, 2u, 16u, 130u})
            for (const Weights& weights : all) {
              Context own{&pool, isa, rounding, form};
              ScratchShape needs = weights.needs;
              needs.tokens = tokens;
              needs.columns = columns;
              const Given given(own, needs);
              Context planned = own;
              planned.scratch = given.get();
              const std::vector<float> x = normal_floats(random, tokens * columns);
              std::vector<float> activations(tokens * arranged_floats(columns));
              arrange_activations(own, x.data(), tokens, columns, columns, activations.data());
              std::vector<float> expected(tokens * rows), found(tokens * rows);
              matmul(own, activations.data(), tokens, weights.view, {}, expected.data(), rows);
              matmul(planned, activations.data(), tokens, weights.view, {}, found.data(), rows);
              const std::string where = weights.name + " " + std::string(isa_name(isa)) + " rounding " +
                                        std::to_string(static_cast<int>(rounding)) + ", " +
                                        std::to_string(rows) + " x " + std::to_string(columns) + ", " +
                                        std::to_string(tokens) + " tokens";
              ASSERT_EQ(std::memcmp(expected.data(), found.data(), found.size() * sizeof(float)), 0) << where;
              ASSERT_TRUE(given.kept()) << where;
              if (tokens == 1) {  // several at once
                std::vector<float> y[3] = {found, found, found};
                const VectorProduct one{activations.data(), &weights.view, y[0].data()},
                    two{activations.data(), &weights.view, y[1].data()};
                multiply_vectors(planned, std::array{one, two});
                ASSERT_EQ(std::memcmp(expected.data(), y[1].data(), rows * sizeof(float)), 0) << where;
                ASSERT_TRUE(given.kept()) << where;
              }
              ++products;
            }
  }
  EXPECT_EQ(products, 480 * available_isas().size());
}

// What a prompt's length adds is for tiles of a block and for sums, not for every token.
TEST(ScratchTest, WideningTakesNoMoreForALongPrompt) {
  const Context ctx{nullptr, Isa::kScalar, Products::kTiles};
  const ScratchShape few{.tokens = kTokensAtOnce, .columns = 4096, .words = false, .wide = true};
  ScratchShape many = few;
  many.tokens = 4096;
  EXPECT_EQ(Scratch::bytes(ctx, many), Scratch::bytes(ctx, few));
  EXPECT_EQ(Scratch::bytes({nullptr, Isa::kScalar}, {.tokens = 4096, .columns = 4096, .wide = true}), 0u);
}

TEST(ScratchTest, EveryThreadHasRoomsOfItsOwn) {
  ThreadPool pool(4);
  Context ctx{&pool, Isa::kScalar, Products::kTiles};
  const ScratchShape shape{.tokens = 16, .columns = 64, .packed = true};
  const Given given(ctx, shape);
  ctx.scratch = given.get();
  std::array<std::byte*, 4> panels{};
  std::atomic<unsigned> here{0};
  pool.parallel_for(4, [&](std::size_t) {
    const unsigned worker = pool.worker();
    panels[worker] = scratch_room(ctx, Room::kPanel, 64);
    for (++here; here < 4;) std::this_thread::yield();  // so that each takes one
  });
  EXPECT_EQ(std::set<std::byte*>(panels.begin(), panels.end()).size(), 4u);
  EXPECT_EQ(std::ranges::count(panels, nullptr), 0);
  EXPECT_EQ(pool.worker(), 0u);
  EXPECT_EQ(ThreadPool(2).worker(), 0u);
}

TEST(ScratchTest, MoreThanWasPlannedIsOurOwnBug) {
  Context ctx{nullptr, Isa::kScalar, Products::kTiles};
  const Given given(ctx, {.tokens = 16, .columns = 64, .packed = true});
  ctx.scratch = given.get();
  EXPECT_NO_THROW(scratch_room(ctx, Room::kPanel, 128));
  EXPECT_DEATH(scratch_room(ctx, Room::kPanel, given.bytes() + 1), "room");
}

}  // namespace
}  // namespace sluice::kernels
