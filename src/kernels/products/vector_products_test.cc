#include "kernels/products/vector_products.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/machine/thread_pool.h"
#include "codec/slices/int8_matrix.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/products/packed/packed_test_data.h"
#include "kernels/products/products.h"
#include "kernels/products/words/matmul.h"

namespace sluice::kernels {
namespace {

// A matrix in all its views, and one token for it.
struct Operand {
  Packed matrix;
  std::vector<std::byte> other;  // as F16, F32 or codes of 8 bits
  std::vector<std::byte> msb, lsb;
  codec::MatrixRef weight;
  std::vector<float> x, bias;

  std::size_t rows() const { return matrix.shape.rows; }
  std::size_t columns() const { return matrix.shape.columns; }
};

// Uses the activations `x`, or its own if `x` is empty. rows 0: any number.
Operand make_operand(std::mt19937_64& random, bool only_bf16, const std::vector<float>& x,
                     std::size_t rows = 0) {
  if (rows == 0) rows = 1 + random() % (random() % 4 == 0 ? 700 : 70);
  const std::size_t columns = x.empty() ? 1 + random() % 300 : x.size();
  const std::vector<float> numbers = normal_floats(random, rows * columns);
  Operand operand;
  operand.matrix = pack_numbers(random, rows, columns, numbers);
  operand.x = x.empty() ? normal_floats(random, columns) : x;
  operand.bias = normal_floats(random, random() % 2 * rows);
  switch (random() % (only_bf16 ? 4 : 6)) {
    case 0:
      operand.weight = operand.matrix.weight();
      break;
    case 1:
      operand.weight = codec::word_matrix(operand.matrix.words.data(), DType::kBF16, rows, columns);
      break;
    case 2: {
      const codec::SlicedShape shape{{rows, columns}, codec::kStoredSliceBits[random() % 3]};
      operand.msb.resize(shape.msb_bytes());
      operand.lsb.resize(shape.lsb_bytes());
      codec::quantise_sliced(std::as_bytes(std::span(numbers)), DType::kF32, shape,
                             {operand.msb.data(), operand.msb.data() + shape.scales_offset(),
                              operand.msb.data() + shape.zeros_offset(), operand.lsb.data()});
      operand.weight = codec::sliced_ref(codec::sliced_view(shape, operand.msb, operand.lsb),
                                         static_cast<codec::SliceView>(random() % 3));
      break;
    }
    case 3: {
      const codec::Int8Shape shape{{rows, columns}};
      operand.other.resize(shape.bytes());
      codec::quantise_int8(std::as_bytes(std::span(numbers)), DType::kF32, shape, operand.other.data(),
                           operand.other.data() + shape.scales_offset());
      operand.weight = codec::int8_ref({rows, columns}, operand.other.data());
      break;
    }
    default: {
      const DType dtype = random() % 2 == 0 ? DType::kF32 : DType::kF16;
      operand.other = encode(numbers, dtype);
      operand.weight = codec::word_matrix(operand.other.data(), dtype, rows, columns);
    }
  }
  return operand;
}

// Every instruction set, with its own way of rounding and also with the plain one.
std::vector<Context> contexts(ThreadPool* pool) {
  std::vector<Context> all;
  for (const Isa isa : available_isas()) {
    for (const ActivationForm form : {ActivationForm::kF32, ActivationForm::kInt8}) {
      all.push_back({pool, isa, Products::kExact, form});
      all.push_back({pool, isa, Products::kTiles, form});
      all.push_back({pool, isa, Products::kPairs, form});
    }
  }
  return all;
}

// The first operand with the same activations as operand i, packed alike: at the latest i itself.
std::size_t first_of_same_activations(const std::vector<Operand>& operands, std::size_t i) {
  const auto found = std::ranges::find_if(operands, [&](const Operand& other) {
    return other.x == operands[i].x && other.weight.format->input == operands[i].weight.format->input;
  });
  return static_cast<std::size_t>(found - operands.begin());
}

TEST(VectorProducts, HaveTheBitsOfEachProductAlone) {
  std::mt19937_64 random = test_random(31);
  ThreadPool two(2), three(3);
  for (int round = 0; round < 40; ++round) {
    std::vector<Operand> operands;
    const bool only_bf16 = random() % 2 == 0;
    for (std::size_t n = random() % 12; n > 0; --n) {
      const bool shares = !operands.empty() && random() % 4 != 0;
      operands.push_back(make_operand(random, only_bf16, shares ? operands.back().x : std::vector<float>()));
    }
    std::vector<std::size_t> sources;  // whose packed activations a product reads
    for (std::size_t i = 0; i < operands.size(); ++i)
      sources.push_back(first_of_same_activations(operands, i));
    for (ThreadPool* const pool : {static_cast<ThreadPool*>(nullptr), &two, &three}) {
      for (const Context& ctx : contexts(pool)) {
        std::vector<std::vector<float>> packed, expected, found;
        for (const Operand& operand : operands) {
          packed.emplace_back(activation_floats(operand.weight));
          expected.emplace_back(operand.rows());
          found.emplace_back(operand.rows());
          arrange_for(ctx, operand.weight, operand.x.data(), 1, operand.columns(), packed.back().data());
          matmul(ctx, packed.back().data(), 1, operand.weight, operand.bias, expected.back().data(),
                 operand.rows());
        }
        std::vector<VectorProduct> products;
        for (std::size_t i = 0; i < operands.size(); ++i)
          products.push_back(
              {packed[sources[i]].data(), &operands[i].weight, found[i].data(), operands[i].bias});
        multiply_vectors(ctx, products);
        for (std::size_t i = 0; i < operands.size(); ++i)
          EXPECT_TRUE(same_bits(expected[i], found[i]))
              << isa_name(ctx.isa) << ", product " << i << " of " << operands.size() << ", "
              << operands[i].rows() << 'x' << operands[i].columns();
      }
    }
  }
}

// Some products have a gate, of their own format or another, and some have none.
TEST(VectorProducts, GatedOnesHaveTheBitsOfTheirPartsAndOfSiluMul) {
  std::mt19937_64 random = test_random(33);
  ThreadPool three(3);
  for (int round = 0; round < 40; ++round) {
    std::vector<Operand> operands, gates;
    const bool only_bf16 = random() % 2 == 0;
    for (std::size_t n = 1 + random() % 5; n > 0; --n) {
      operands.push_back(make_operand(random, only_bf16, {}));
      const Operand& operand = operands.back();
      gates.push_back(make_operand(random, only_bf16, operand.x, operand.rows()));
    }
    const std::uint64_t plain = random();  // those without a gate
    for (ThreadPool* const pool : {static_cast<ThreadPool*>(nullptr), &three}) {
      for (const Context& ctx : contexts(pool)) {
        std::vector<std::vector<float>> packed, gate_packed, expected, found, gated;
        std::vector<VectorProduct> products;
        for (std::size_t i = 0; i < operands.size(); ++i) {
          const Operand& operand = operands[i];
          const std::size_t rows = operand.rows();
          packed.emplace_back(activation_floats(operand.weight));
          expected.emplace_back(rows);
          found.emplace_back(rows);
          gated.emplace_back(rows);
          gate_packed.emplace_back(activation_floats(gates[i].weight));
          arrange_for(ctx, gates[i].weight, operand.x.data(), 1, operand.columns(), gate_packed[i].data());
          arrange_for(ctx, operand.weight, operand.x.data(), 1, operand.columns(), packed.back().data());
          matmul(ctx, packed[i].data(), 1, operand.weight, operand.bias, expected[i].data(), rows);
          products.push_back({packed[i].data(), &operand.weight, found[i].data(), operand.bias});
          if ((plain >> i & 1) != 0) continue;
          std::vector<float> gate(rows);
          matmul(ctx, gate_packed[i].data(), 1, gates[i].weight, gates[i].bias, gate.data(), rows);
          silu_mul(ctx, gate.data(), expected[i].data(), rows, expected[i].data());
          products[i].gate = &gates[i].weight;
          products[i].gated = gated[i].data();
          products[i].gate_x = gate_packed[i].data();
          products[i].gate_bias = gates[i].bias;
        }
        multiply_vectors(ctx, products);
        for (std::size_t i = 0; i < operands.size(); ++i)
          EXPECT_TRUE(same_bits(expected[i], found[i]))
              << isa_name(ctx.isa) << ", product " << i << " of " << operands.size() << ", "
              << operands[i].rows() << 'x' << operands[i].columns();
      }
    }
  }
}

TEST(VectorProducts, ADamagedChunkOfAnyIsAnError) {
  std::mt19937_64 random = test_random(32);
  const Packed sound = pack_matrix(random, 64, 256, false);
  const Packed broken = damaged_matrix(random, 64, 256);
  const codec::MatrixRef views[] = {sound.weight(), broken.weight()};
  std::vector<float> packed(arranged_floats(256)), y(64);
  const VectorProduct products[] = {{packed.data(), &views[0], y.data()},
                                    {packed.data(), &views[1], y.data()}};
  for (const Isa isa : available_isas()) EXPECT_THROW(multiply_vectors({nullptr, isa}, products), Error);
  std::vector<float> gated(64);
  for (const int damaged : {0, 1}) {  // the product, or its gate
    const VectorProduct pair[] = {
        {packed.data(), &views[1 - damaged], y.data(), {}, &views[damaged], gated.data(), packed.data()}};
    for (const Isa isa : available_isas()) EXPECT_THROW(multiply_vectors({nullptr, isa}, pair), Error);
  }
}

}  // namespace
}  // namespace sluice::kernels
