// Products as launches: those of one format together, with as many rows and tokens a warp as suits their
// shapes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "codec/matrix_format.h"
#include "device/access.h"
#include "kernels/gpu/products/packed-inl.h"
#include "kernels/gpu/products/product-inl.h"
#include "kernels/gpu/products/word_rows-inl.h"

namespace sluice::kernels::gpu {

// What kernels tell apart.
enum class ProductKind { kBf16, kF16, kF32, kAnyWords, kPacked, kPackedAnywhere };

inline ProductKind product_kind(const codec::MatrixFormat& format, const ProductItem& item) {
  const bool aligned = item.aligned && item.columns % 8 == 0;
  if (&format == &codec::kFormatPacked)
    return item.aligned ? ProductKind::kPacked : ProductKind::kPackedAnywhere;
  if (&format == &codec::kFormatBf16) return aligned ? ProductKind::kBf16 : ProductKind::kAnyWords;
  if (&format == &codec::kFormatF16) return aligned ? ProductKind::kF16 : ProductKind::kAnyWords;
  SLUICE_CHECK(&format == &codec::kFormatF32, std::string(format.name));
  return aligned ? ProductKind::kF32 : ProductKind::kAnyWords;
}

// Fewer warps than this do not keep the memory of a GPU busy: eight for each of 132 multiprocessors.
inline constexpr std::uint64_t kEnoughWarps = 1056;

template <class Launcher>
class ProductLaunches {
 public:
  ProductLaunches(Launcher& launcher, const device::Access& access) : launcher_(launcher), access_(access) {}

  // `format`: of its sides.
  void add(const codec::MatrixFormat& format, const ProductItem& item) {
    if (item.tokens != 0 && item.rows != 0) items_.push_back({product_kind(format, item), item});
  }

  // Launches what was added. `chunks`: the tables of packed matrices.
  void run(const PackedChunk* chunks) {
    std::ranges::stable_sort(items_, {}, &Added::kind);
    for (std::size_t begin = 0; begin < items_.size();) {
      ProductItems some{};
      some.fault = launcher_.fault(access_);
      some.chunks = chunks;
      const ProductKind kind = items_[begin].kind;
      for (; begin < items_.size() && items_[begin].kind == kind && some.count < kProductItems; ++begin)
        some.items[some.count++] = items_[begin].item;
      run_kind(kind, some);
    }
    items_.clear();
  }

  // Those of one format. A launcher may have this compiled elsewhere (cuda_products.h).
  template <class Format>
  void run_rows(ProductItems& items) {
    cut_up<Format>(items);
  }
  void run_packed(ProductItems& items) {
    const std::uint32_t tokens = Load(items).tokens;
    if (tokens == 1) return launch<PackedKernel<1, true>>(items, PackedKernel<1, true>::tiles);
    if (tokens == 2) return launch<PackedKernel<2, true>>(items, PackedKernel<2, true>::tiles);
    if (tokens <= 4) return launch<PackedKernel<4, true>>(items, PackedKernel<4, true>::tiles);
    launch<PackedKernel<8, true>>(items, PackedKernel<8, true>::tiles);
  }
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
    if (load.tokens == 2) return launch<Format, 2, 2, 2>(items);
    if (load.tokens <= 4) return launch<Format, 2, 2, 4>(items);
    if (load.tokens <= 8 && !load.enough(16)) return launch<Format, 1, 4, 8>(items);
    launch<Format, 1, 8, 8>(items);
  }

 private:
  struct Added {
    ProductKind kind;
    ProductItem item;
  };

  // What decides how a launch is cut up.
  struct Load {
    std::uint64_t rows = 0;  // of all matrices
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
    // Whether `rows` a warp leave enough warps.
    bool enough(std::uint64_t rows_a_warp) const { return rows / rows_a_warp >= kEnoughWarps; }
  };

  void run_kind(ProductKind kind, ProductItems& items) {
    switch (kind) {
      case ProductKind::kBf16:
        return run_rows<WordFormat<DType::kBF16>>(items);
      case ProductKind::kF16:
        return run_rows<WordFormat<DType::kF16>>(items);
      case ProductKind::kF32:
        return run_rows<WordFormat<DType::kF32>>(items);
      case ProductKind::kAnyWords:
        return Load(items).tokens == 1 ? launch<AnyWordFormat, 1, 2, 1>(items)
                                       : launch<AnyWordFormat, 1, 2, 4>(items);
      case ProductKind::kPacked:
        return run_packed(items);
      case ProductKind::kPackedAnywhere:
        return launch<PackedKernel<4, false>>(items, PackedKernel<4, false>::tiles);
    }
  }

  template <class Format, int L, int R, int T>
  void launch(ProductItems& items) {
    using Kernel = ProductKernel<Format, L, R, T>;
    launch<Kernel>(items, Kernel::Tile::tiles);
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
  std::vector<Added> items_;
};

}  // namespace sluice::kernels::gpu
