// Makes BF16 words of packed planes on a GPU, for products of many tokens: the decoder of packed-inl.h runs
// once, not for each tile of tokens. A chunk whose exponents are not coded is what the recovery kernel of
// ZipMoE takes (arXiv 2601.21198, section 3).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gpu/products/packed_group-inl.h"
#include "kernels/gpu/products/packed_words-inl.h"
#include "kernels/gpu/products/product_items.h"

namespace sluice::kernels::gpu {

// A packed matrix and where its words go: (rows, columns), row-major, at an even address.
struct RecoverItem {
  const std::byte* sign_mantissas;
  std::byte* words;
  std::uint32_t first_chunk;  // in the launch's table
  std::uint32_t rows, columns;
  std::uint32_t first_warp;  // this matrix's, in the launch

  SLUICE_GPU_HOST constexpr std::uint32_t groups() const { return ceil_div(rows, 8); }
};

// Both sides of as many products as fit a launch.
inline constexpr std::uint32_t kRecoverItems = 2 * kProductItems;
struct RecoverItems {
  std::uint32_t count;
  std::uint32_t* fault;  // becomes 1 where a group is damaged; its words are not all written then
  const PackedChunk* chunks;
  RecoverItem items[kRecoverItems];
};
static_assert(sizeof(RecoverItems) <= 3840);

// A warp for each group of eight rows. kAligned: planes and chunks begin at multiples of 16.
template <bool kAligned>
struct RecoverKernel {
  using Args = RecoverItems;
  static constexpr std::uint32_t kShared = 2048;
  static constexpr int kBlocks = 4;

  template <class Warp>
  static SLUICE_GPU void run(const Warp& warp, const Args& args) {
    using Word = typename Warp::Word;
    using Bytes16 = typename Warp::template Words<4>;
    static_assert(PackedGroupReader<Warp, kAligned>::kShared == kShared);
    std::uint32_t number = 0;
    while (number + 1 < args.count && warp.index() >= args.items[number + 1].first_warp) ++number;
    const RecoverItem& item = args.items[number];
    const auto group = static_cast<std::uint32_t>(warp.index() - item.first_warp);
    const PackedChunk* chunk = args.chunks + item.first_chunk;
    while (group >= chunk[1].first_group) ++chunk;
    const std::uint32_t blocks = ceil_div(item.columns, 64);
    PackedGroupReader<Warp, kAligned> reader(warp, *chunk, group - chunk->first_group, blocks,
                                             item.sign_mantissas + std::uint64_t{group} * blocks * 512);
    std::byte* const words = item.words + std::uint64_t{group} * 16 * item.columns;
    const bool whole = item.columns % 8 == 0 && reinterpret_cast<std::uintptr_t>(item.words) % 16 == 0;
    const Word row = warp.lane() / Word(4), eighth = warp.lane() % Word(4) * Word(8);
    const auto has_row = row < Word(item.rows - 8 * group);
    for (std::uint32_t block = 0; block < blocks; ++block) {
      Bytes16 exponents, sign_mantissas;
      if (!reader.next(exponents, sign_mantissas)) break;
      SLUICE_GPU_UNROLL
      for (int half = 0; half < 2; ++half) {
        Bytes16 eight;
        SLUICE_GPU_UNROLL
        for (int i = 0; i < 4; ++i)
          eight.of[i] = two_words(warp, exponents.of[2 * half + i / 2], sign_mantissas.of[2 * half + i / 2],
                                  i % 2 == 0 ? kLowPair : kHighPair);
        const Word column = Word(64 * block + 32 * half) + eighth,
                   at = (row * Word(item.columns) + column) * Word(2);
        if (whole) {
          warp.template store_words_if<4>(has_row && column < Word(item.columns), words, at, eight);
        } else {
          store_each(warp, item.columns, has_row, words, at, column, eight);
        }
      }
    }
    if (!reader.is_sound()) warp.store_if(warp.lane() == Word(0), args.fault, Word(0), Word(1));
  }

 private:
  template <class Warp>
  static SLUICE_GPU void store_each(const Warp& warp, std::uint32_t columns, typename Warp::Mask has_row,
                                    std::byte* words, typename Warp::Word at, typename Warp::Word column,
                                    const typename Warp::template Words<4>& eight) {
    using Word = typename Warp::Word;
    SLUICE_GPU_UNROLL
    for (std::uint32_t i = 0; i < 8; ++i)
      warp.store_half_if(has_row && column + Word(i) < Word(columns), words, at + Word(2 * i),
                         eight.of[i / 2] >> Word(i % 2 * 16));
  }
};

}  // namespace sluice::kernels::gpu
