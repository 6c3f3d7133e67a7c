#include "kernels/packed_matmul.h"

#include "base/error.h"
#include "kernels/matmul.h"
#include "kernels/test_data.h"

namespace sluice::kernels {
namespace {

// A matrix as words, and as planes in chunks of some groups each.
struct Packed {
  std::vector<std::byte> words, sign_mantissas;
  std::vector<std::vector<std::byte>> chunk_bytes;
  std::vector<PackedChunk> chunks;
  codec::TileShape shape;
  PackedWeight weight() const { return {shape, sign_mantissas.data(), chunks}; }
};

Packed pack_matrix(std::mt19937_64& random, std::size_t rows, std::size_t columns, bool wild) {
  Packed result;
  result.shape = {rows, columns};
  std::vector<float> numbers =
      wild ? wild_floats(random, rows * columns) : normal_floats(random, rows * columns);
  result.words = encode(numbers, DType::kBF16);
  const std::uint64_t group_places = result.shape.group_places();
  std::vector<std::byte> exponents(result.shape.places());
  result.sign_mantissas.resize(result.shape.places());
  codec::split_tiles(result.words, result.shape, exponents, result.sign_mantissas);
  for (std::uint64_t group = 0; group < result.shape.groups();) {
    const std::uint64_t groups = std::min<std::uint64_t>(1 + random() % 5, result.shape.groups() - group);
    const codec::TileRows part = codec::tile_rows(result.shape, group * group_places, groups * group_places);
    const std::span<const std::byte> raw =
        std::span<const std::byte>(exponents).subspan(group * group_places, groups * group_places);
    std::vector<std::byte> coded = codec::encode_native(raw, part.shape);
    const bool use = !coded.empty() && random() % 4 != 0;
    result.chunk_bytes.push_back(use ? std::move(coded) : std::vector<std::byte>(raw.begin(), raw.end()));
    result.chunks.push_back({{}, group, groups, use});
    group += groups;
  }
  for (std::size_t i = 0; i < result.chunks.size(); ++i) result.chunks[i].bytes = result.chunk_bytes[i];
  return result;
}

TEST(PackedMatmul, HasTheBitsOfTheWords) {
  std::mt19937_64 random = test_random(7);
  ThreadPool pool(2);
  for (int round = 0; round < 120; ++round) {
    const bool large = round % 20 == 0;
    const std::size_t rows = 1 + random() % (large ? 1500 : 70),
                      columns = 1 + random() % (large ? 2100 : 300), tokens = 1 + random() % (large ? 40 : 9);
    const Packed matrix = pack_matrix(random, rows, columns, random() % 4 == 0);
    const std::vector<float> x = normal_floats(random, tokens * columns),
                             bias = normal_floats(random, random() % 2 * rows);
    const Weight words{matrix.words.data(), DType::kBF16, rows, columns};
    for (const Isa isa : available_isas()) {
      for (ThreadPool* const threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
        const Context ctx{threads, isa};
        std::vector<float> packed(tokens * packed_floats(columns)), expected(tokens * rows),
            found(tokens * rows);
        pack_activations(ctx, x.data(), tokens, columns, columns, packed.data());
        matmul(ctx, packed.data(), tokens, words, bias, expected.data(), rows);
        packed_matmul(ctx, packed.data(), tokens, matrix.weight(), bias, found.data(), rows);
        EXPECT_TRUE(same_bits(expected, found))
            << isa_name(isa) << ' ' << rows << 'x' << columns << ", " << tokens;
      }
    }
  }
}

TEST(PackedMatmul, ADamagedChunkIsAnError) {
  std::mt19937_64 random = test_random(8);
  Packed matrix = pack_matrix(random, 64, 256, false);
  for (PackedChunk& chunk : matrix.chunks) {
    if (!chunk.coded) continue;
    // A byte of tier 1: the counts are then wrong, or so are exponents, which a checksum finds.
    std::vector<std::byte>& bytes =
        matrix.chunk_bytes[static_cast<std::size_t>(&chunk - matrix.chunks.data())];
    const std::size_t lists =
        std::to_integer<std::size_t>(bytes[16]) | std::to_integer<std::size_t>(bytes[17]) << 8;
    for (std::size_t i = 0; i < 64; ++i) bytes[lists - 128 * 4 + i] = std::byte{0xff};  // all escape
    chunk.bytes = bytes;
    std::vector<float> packed(packed_floats(256)), y(64);
    for (const Isa isa : available_isas())
      EXPECT_THROW(packed_matmul({nullptr, isa}, packed.data(), 1, matrix.weight(), {}, y.data(), 64), Error);
    return;
  }
}

}  // namespace
}  // namespace sluice::kernels
