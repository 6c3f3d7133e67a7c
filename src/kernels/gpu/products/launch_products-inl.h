// Products as launches: those of one format together, with as many rows and tokens a warp as suits their
// shapes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "codec/matrix_format.h"
#include "device/access.h"
#include "kernels/gpu/products/block_rows-inl.h"
#include "kernels/gpu/products/fast-inl.h"
#include "kernels/gpu/products/packed-inl.h"
#include "kernels/gpu/products/product-inl.h"
#include "kernels/gpu/products/recover_batch.h"
#include "kernels/gpu/products/word_rows-inl.h"
#include "kernels/ops/device_math.h"

namespace sluice::kernels::gpu {

// What kernels tell apart.
enum class ProductKind {
  kBf16,
  kFastBf16,
  kF16,
  kF32,
  kAnyWords,
  kPacked,
  kPackedAnywhere,
  kQ80,
  kQ4K,
  kQ6K,
  kMxfp4,
  kMxfp4Pair,
  kQ80Anywhere,
  kQ4KAnywhere,
  kQ6KAnywhere,
  kMxfp4Anywhere,
  kMxfp4PairAnywhere
};

inline ProductKind product_kind(const codec::MatrixFormat& format, const ProductItem& item) {
  struct Kinds {
    const codec::MatrixFormat* format;
    ProductKind aligned, anywhere;
  };
  static const Kinds kKinds[] = {
      {&codec::kFormatBf16, ProductKind::kBf16, ProductKind::kAnyWords},
      {&codec::kFormatF16, ProductKind::kF16, ProductKind::kAnyWords},
      {&codec::kFormatF32, ProductKind::kF32, ProductKind::kAnyWords},
      {&codec::kFormatPacked, ProductKind::kPacked, ProductKind::kPackedAnywhere},
      {&codec::kFormatQ80, ProductKind::kQ80, ProductKind::kQ80Anywhere},
      {&codec::kFormatQ4K, ProductKind::kQ4K, ProductKind::kQ4KAnywhere},
      {&codec::kFormatQ6K, ProductKind::kQ6K, ProductKind::kQ6KAnywhere},
      {&codec::kFormatMxfp4, ProductKind::kMxfp4, ProductKind::kMxfp4Anywhere},
      {&codec::kFormatMxfp4Pair, ProductKind::kMxfp4Pair, ProductKind::kMxfp4PairAnywhere},
  };
  const auto found = std::ranges::find(kKinds, &format, &Kinds::format);
  SLUICE_CHECK(found != std::end(kKinds), std::string(format.name));
  const bool aligned = item.aligned && (!format.words || item.columns % 8 == 0);
  return aligned ? found->aligned : found->anywhere;
}

// Fewer warps than this do not keep the memory of a GPU busy: eight for each of 132 multiprocessors.
inline constexpr std::uint64_t kEnoughWarps = 1056;

template <class Launcher>
class ProductLaunches {
 public:
  // `exact`: with the host's bits, whatever the math of the launcher.
  ProductLaunches(Launcher& launcher, const device::Access& access, bool exact = false)
      : launcher_(launcher), access_(access), fast_(!exact && launcher.math() == DeviceMath::kFast) {}

  // `format`: of its sides.
  void add(const codec::MatrixFormat& format, const ProductItem& item) {
    if (item.tokens == 0 || item.rows == 0) return;
    const ProductKind kind = product_kind(format, item);
    items_.push_back({fast_ && kind == ProductKind::kBf16 ? ProductKind::kFastBf16 : kind, item});
  }

  // Launches what was added. `chunks`: the tables of packed matrices.
  void run(const PackedChunk* chunks) {
    recover(ProductKind::kPacked, chunks);
    recover(ProductKind::kPackedAnywhere, chunks);
    std::ranges::stable_sort(items_, {}, &Added::kind);
    for (std::size_t begin = 0; begin < items_.size();) {
      ProductItems some = no_items(chunks);
      const ProductKind kind = items_[begin].kind;
      for (; begin < items_.size() && items_[begin].kind == kind && some.count < kProductItems; ++begin)
        some.items[some.count++] = items_[begin].item;
      run_kind(kind, some);
    }
    items_.clear();
  }

  // The launches of items of one kind. A launcher may have them compiled elsewhere, by specialising
  // them (cuda_products.h).
  template <class Format>
  void run_rows(ProductItems& items) {
    cut_up<Format>(items);
  }
  template <class Format>
  void run_anywhere(ProductItems& items) {
    cut_up_anywhere<Format>(items);
  }
  void run_fast(ProductItems& items) { cut_up_fast(items); }
  void run_packed(ProductItems& items) { cut_up_packed(items); }
  void run_packed_anywhere(ProductItems& items) { cut_up_packed_anywhere(items); }
  void run_recover(RecoverItems& items, bool aligned) { cut_up_recover(items, aligned); }

  template <class Format>
  void cut_up(ProductItems& items) {
    const Load load(items);
    if (load.tokens == 1 && !load.paired) {
      if (load.enough(8)) return launch<Format, 4, 1, 1>(items);
      if (load.enough(4)) return launch<Format, 2, 1, 1>(items);
      return launch<Format, 1, 1, 1>(items);
    }
    if (load.tokens == 1) {
      if (load.enough(16)) return launch<Format, 4, 2, 1>(items);
      if (load.enough(8)) return launch<Format, 2, 2, 1>(items);
      return launch<Format, 1, 2, 1>(items);
    }
    if constexpr (Format::kWide) {
      if (load.tokens == 2) return launch<Format, 1, 4, 2, 4, 1>(items);
      const std::uint64_t token_tiles = ceil_div(load.tokens, 8);
      if (load.tokens > 4 && load.enough(16, token_tiles)) return launch<Format, 1, 8, 8, 2>(items);
      if (load.tokens > 4 && load.enough(8, token_tiles)) return launch<Format, 1, 4, 8, 2, 1>(items);
      if (load.enough(8)) return launch<Format, 1, 4, 4, 4, 1>(items);
      return launch<Format, 1, 2, 4, 4, 1>(items);
    }
    if (load.tokens == 2) return launch<Format, 2, 2, 2>(items);
    if (load.tokens <= 4) return launch<Format, 2, 2, 4>(items);
    launch<Format, 1, 4, 8>(items);
  }
  // Those that lie anywhere: slow, and seldom.
  template <class Format>
  void cut_up_anywhere(ProductItems& items) {
    if (Load(items).tokens == 1) return launch<Format, 1, 2, 1>(items);
    launch<Format, 1, 2, 4>(items);
  }
  void cut_up_fast(ProductItems& items) {
    const Load load(items);
    const std::uint64_t token_tiles = ceil_div(load.tokens, 32);
    if (load.tokens <= 8) return load.enough(32) ? launch_fast<2, 1>(items) : launch_fast<1, 1>(items);
    if (load.tokens <= 16) return load.enough(32) ? launch_fast<2, 2>(items) : launch_fast<1, 2>(items);
    if (load.enough(64, token_tiles)) return launch_fast<4, 4>(items);
    if (load.enough(32, token_tiles)) return launch_fast<2, 4>(items);
    launch_fast<1, 4>(items);
  }
  void cut_up_packed(ProductItems& items) {
    const std::uint32_t tokens = Load(items).tokens;
    if (tokens == 1) return launch<PackedKernel<1, true>>(items, PackedKernel<1, true>::tiles);
    if (tokens == 2) return launch<PackedKernel<2, true>>(items, PackedKernel<2, true>::tiles);
    if (tokens <= 4) return launch<PackedKernel<4, true>>(items, PackedKernel<4, true>::tiles);
    launch<PackedKernel<8, true>>(items, PackedKernel<8, true>::tiles);
  }
  void cut_up_packed_anywhere(ProductItems& items) {
    launch<PackedKernel<4, false>>(items, PackedKernel<4, false>::tiles);
  }
  void cut_up_recover(RecoverItems& items, bool aligned) {
    std::uint64_t warps = 0;
    for (RecoverItem& item : std::span(items.items, items.count)) {
      item.first_warp = static_cast<std::uint32_t>(warps);
      warps += item.groups();
      SLUICE_CHECK(warps <= UINT32_MAX, std::to_string(warps));
    }
    if (aligned) return launcher_.template launch<RecoverKernel<true>>(access_, warps, items);
    launcher_.template launch<RecoverKernel<false>>(access_, warps, items);
  }

 private:
  struct Added {
    ProductKind kind;
    ProductItem item;
  };

  ProductItems no_items(const PackedChunk* chunks) {
    ProductItems none{};
    none.fault = launcher_.fault(access_);
    none.chunks = chunks;
    return none;
  }

  // Multiplies those of many tokens as words, as far as the launcher has room for these.
  void recover(ProductKind kind, const PackedChunk* chunks) {
    const auto suits = [&](const Added& each) { return each.kind == kind && RecoverBatch::suits(each.item); };
    if (std::ranges::none_of(items_, suits)) return;
    RecoverBatch batch(launcher_.room(access_));
    ProductItems words = no_items(nullptr);
    const auto finish = [&] {
      if (words.count == 0) return;
      batch.items().fault = words.fault;
      batch.items().chunks = chunks;
      run_recover(batch.items(), kind == ProductKind::kPacked);
      run_kind(ProductKind::kBf16, words);
      batch.clear();
      words.count = 0;
    };
    std::vector<Added> others;
    for (const Added& each : items_) {
      if (!suits(each) || !batch.could_hold(each.item)) {
        others.push_back(each);
        continue;
      }
      if (!batch.holds(each.item) || words.count == kProductItems) finish();
      words.items[words.count++] = batch.add(each.item);
    }
    finish();
    items_ = std::move(others);
  }

  // What decides how a launch is cut up.
  struct Load {
    std::uint64_t rows = 0;  // rows of all matrices
    std::uint32_t tokens = 0;
    bool paired = false;
    explicit Load(const ProductItems& items) {
      for (std::uint32_t i = 0; i < items.count; ++i) {
        const ProductItem& item = items.items[i];
        rows += std::uint64_t{item.rows} * (is_paired(item.form) ? 2 : 1);
        tokens = std::max(tokens, item.tokens);
        paired |= is_paired(item.form);
      }
    }
    // Whether this many rows a warp leave enough warps.
    bool enough(std::uint64_t rows_a_warp, std::uint64_t token_tiles = 1) const {
      return rows / rows_a_warp * token_tiles >= kEnoughWarps;
    }
  };

  void run_kind(ProductKind kind, ProductItems& items) {
    switch (kind) {
      case ProductKind::kBf16:
        return run_rows<WordFormat<DType::kBF16>>(items);
      case ProductKind::kFastBf16:
        return run_fast(items);
      case ProductKind::kF16:
        return run_rows<WordFormat<DType::kF16>>(items);
      case ProductKind::kF32:
        return run_rows<WordFormat<DType::kF32>>(items);
      case ProductKind::kAnyWords:
        return run_anywhere<AnyWordFormat>(items);
      case ProductKind::kPacked:
        return run_packed(items);
      case ProductKind::kPackedAnywhere:
        return run_packed_anywhere(items);
      case ProductKind::kQ80:
        return run_rows<BlockFormat<Q80Row, true>>(items);
      case ProductKind::kQ4K:
        return run_rows<BlockFormat<Q4KRow, true>>(items);
      case ProductKind::kQ6K:
        return run_rows<BlockFormat<Q6KRow, true>>(items);
      case ProductKind::kMxfp4:
        return run_rows<BlockFormat<Mxfp4Row, true>>(items);
      case ProductKind::kMxfp4Pair:
        return run_rows<BlockFormat<Mxfp4PairRow, true>>(items);
      case ProductKind::kQ80Anywhere:
        return run_anywhere<BlockFormat<Q80Row, false>>(items);
      case ProductKind::kQ4KAnywhere:
        return run_anywhere<BlockFormat<Q4KRow, false>>(items);
      case ProductKind::kQ6KAnywhere:
        return run_anywhere<BlockFormat<Q6KRow, false>>(items);
      case ProductKind::kMxfp4Anywhere:
        return run_anywhere<BlockFormat<Mxfp4Row, false>>(items);
      case ProductKind::kMxfp4PairAnywhere:
        return run_anywhere<BlockFormat<Mxfp4PairRow, false>>(items);
    }
  }

  template <class Format, int L, int R, int T, int kAhead = 0, int kReads = 0>
  void launch(ProductItems& items) {
    using Kernel = ProductKernel<Format, L, R, T, kAhead, kReads>;
    launch<Kernel>(items, Kernel::tiles_of);
  }

  template <int R, int T>
  void launch_fast(ProductItems& items) {
    launch<FastKernel<R, T>>(items, FastKernel<R, T>::tiles);
  }

  template <class Kernel, class Tiles>
  void launch(ProductItems& items, const Tiles& tiles) {
    std::uint64_t all = 0;
    for (std::uint32_t i = 0; i < items.count; ++i) {
      items.items[i].first_warp = static_cast<std::uint32_t>(all);
      all += tiles(items.items[i]).warps();
      SLUICE_CHECK(all <= UINT32_MAX, std::to_string(all));
    }
    launcher_.template launch<Kernel>(access_, all, items);
  }

  Launcher& launcher_;
  const device::Access& access_;
  const bool fast_;
  std::vector<Added> items_;
};

}  // namespace sluice::kernels::gpu
