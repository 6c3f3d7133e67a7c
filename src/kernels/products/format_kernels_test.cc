// The two tables have the same rows; a format without kernels has the bits of its fp32 words.
#include "kernels/products/format_kernels.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/error.h"
#include "base/machine/thread_pool.h"
#include "codec/toy_formats.h"
#include "kernels/products/input_form.h"
#include "kernels/products/packed/packed_impl.h"
#include "kernels/products/products.h"
#include "kernels/products/vector_products.h"
#include "kernels/test_data.h"

namespace sluice::kernels {
namespace {

using codec::testing::kToys;
using codec::testing::toy_matrix;
using codec::testing::ToyMatrix;

TEST(FormatKernels, HaveARowForEveryFormatThatIsComputedWithAndForNoOther) {
  std::set<const codec::MatrixFormat*> rows;
  for (const FormatRow& row : format_rows()) {
    EXPECT_TRUE(rows.insert(row.format).second) << row.format->name << " twice";
    EXPECT_TRUE(row.format->input) << row.format->name;
  }
  for (const codec::MatrixFormat* const format : codec::matrix_formats()) {
    EXPECT_EQ(rows.contains(format), format->input.has_value()) << format->name;
    rows.erase(format);
  }
  EXPECT_TRUE(rows.empty()) << "kernels of a format that codec/matrix_format.cc does not have";
}

TEST(FormatKernels, EveryInstructionSetHasRowsOfEveryFormat) {
  for (const FormatRow& row : format_rows()) {
    ASSERT_NE(row.driver, nullptr) << row.format->name;
    for (const Isa isa : available_isas()) {
      EXPECT_NE(row.of(isa).rows, nullptr) << row.format->name << ' ' << isa_name(isa);
      EXPECT_EQ(row.of(isa).transposed != nullptr, row.format->words.has_value()) << row.format->name;
      // Codes of weights are multiplied with codes of activations; words are not.
      EXPECT_EQ(row.of(isa).coded_rows != nullptr, row.format->slices.has_value() ||
                                                       row.format == &codec::kFormatInt8 ||
                                                       row.format->input == codec::InputForm::kBlocks)
          << row.format->name;
    }
  }
}

// A test that compares an instruction set with scalar proves nothing if both run the same code.
TEST(FormatKernels, VectorSetsHaveTheirOwn) {
#if defined(__x86_64__)
  for (const FormatRow& row : format_rows()) {
    EXPECT_NE(row.of(Isa::kAvx2).rows, row.of(Isa::kScalar).rows) << row.format->name;
    EXPECT_NE(row.of(Isa::kAvx512).rows, row.of(Isa::kAvx2).rows) << row.format->name;
  }
#endif
}

TEST(InputForms, AreCollectedFromFormats) {
  const codec::MatrixFormat* const formats[] = {&codec::kFormatSplit, &codec::kFormatBf16,
                                                &codec::kFormatSlices63};
  const InputForms forms = input_forms_of(formats);
  EXPECT_TRUE(forms.has(codec::InputForm::kWords));
  EXPECT_TRUE(forms.has(codec::InputForm::kCells));
  EXPECT_FALSE(forms.has(codec::InputForm::kExact));
}

// Every instruction set, with its own way of rounding and also with the plain one.
std::vector<Context> contexts(ThreadPool* pool, const FormatTable* formats) {
  std::vector<Context> all;
  for (const Isa isa : available_isas())
    for (const Products products : {Products::kExact, Products::kTiles, Products::kPairs})
      for (const ActivationForm form : {ActivationForm::kF32, ActivationForm::kInt8})
        all.push_back(
            {.pool = pool, .isa = isa, .products = products, .activations = form, .formats = formats});
  return all;
}

class DecodedFormats : public ::testing::Test {
 protected:
  DecodedFormats()
      : table_({decoded_format(codec::testing::kToy8), decoded_format(codec::testing::kToyFp8),
                decoded_format(codec::testing::kToy256)}) {}

  // The product with the matrix's fp32 words in unrounded arithmetic.
  static std::vector<float> expected(const ToyMatrix& toy, const std::vector<float>& x, std::size_t tokens,
                                     std::span<const float> bias) {
    const std::vector<float> words = toy.floats();
    const codec::MatrixRef w = codec::word_matrix(reinterpret_cast<const std::byte*>(words.data()),
                                                  DType::kF32, toy.shape.rows, toy.shape.columns);
    const Context scalar{nullptr, Isa::kScalar};
    std::vector<float> arranged(tokens * activation_floats(w)), y(tokens * toy.shape.rows);
    arrange_for(scalar, w, x.data(), tokens, toy.shape.columns, arranged.data());
    matmul(scalar, arranged.data(), tokens, w, bias, y.data(), toy.shape.rows);
    return y;
  }

  std::mt19937_64 random_ = test_random(101);
  ThreadPool pool_{3};
  FormatTable table_;
};

TEST_F(DecodedFormats, HaveTheBitsOfTheirWordsWhateverTheContextRounds) {
  for (const codec::MatrixFormat* const format : kToys) {
    for (const auto& [rows, columns, tokens] :
         {std::array<std::size_t, 3>{1, 256, 1}, {37, 512, 3}, {200, 256, 20}, {150, 768, 1}}) {
      const std::size_t cut = format->ragged ? columns - 56 : columns;  // not whole blocks, where that may be
      const ToyMatrix toy = toy_matrix(*format, {rows, cut}, normal_floats(random_, rows * cut));
      const std::vector<float> x = normal_floats(random_, tokens * cut);
      const std::vector<float> bias = normal_floats(random_, random_() % 2 * rows);
      const std::vector<float> wanted = expected(toy, x, tokens, bias);
      for (ThreadPool* const pool : {static_cast<ThreadPool*>(nullptr), &pool_}) {
        for (const Context& ctx : contexts(pool, &table_)) {
          std::vector<float> arranged(tokens * activation_floats(toy.ref())), y(tokens * rows);
          arrange_for(ctx, toy.ref(), x.data(), tokens, cut, arranged.data());
          matmul(ctx, arranged.data(), tokens, toy.ref(), bias, y.data(), rows);
          EXPECT_TRUE(same_bits(wanted, y))
              << format->name << ' ' << isa_name(ctx.isa) << ' ' << rows << 'x' << cut << ", " << tokens;
        }
      }
    }
  }
}

// A gate, an up and a down matrix in three formats.
TEST_F(DecodedFormats, AndInProductsOfVectorsTogether) {
  std::vector<ToyMatrix> toys;
  for (const codec::MatrixFormat* const format : kToys)
    toys.push_back(toy_matrix(*format, {96, 256}, normal_floats(random_, 96 * 256)));
  const std::vector<float> x = normal_floats(random_, 256), bias = normal_floats(random_, 96);
  for (const Context& ctx : contexts(&pool_, &table_)) {
    std::vector<std::vector<float>> inputs, found(toys.size(), std::vector<float>(96));
    std::vector<codec::MatrixRef> refs;
    for (const ToyMatrix& toy : toys) {
      refs.push_back(toy.ref());
      inputs.emplace_back(activation_floats(refs.back()));
      arrange_for(ctx, refs.back(), x.data(), 1, 256, inputs.back().data());
    }
    std::vector<VectorProduct> products;
    for (std::size_t i = 0; i < toys.size(); ++i)
      products.push_back({inputs[i].data(), &refs[i], found[i].data(), bias});
    multiply_vectors(ctx, products);
    for (std::size_t i = 0; i < toys.size(); ++i)
      EXPECT_TRUE(same_bits(expected(toys[i], x, 1, bias), found[i])) << kToys[i]->name;
  }
}

TEST_F(DecodedFormats, AreKnownOnlyWhereTheTableIsGiven) {
  EXPECT_TRUE(has_kernels({.formats = &table_}, &codec::testing::kToy8));
  EXPECT_FALSE(has_kernels({}, &codec::testing::kToy8));
  EXPECT_TRUE(has_kernels({}, &codec::kFormatBf16));
  EXPECT_FALSE(has_kernels({}, &codec::kFormatSplit));
}

}  // namespace
}  // namespace sluice::kernels
