// Sums, products and copies of numbers on a GPU, each as elementwise.h has it.
#pragma once

#include <cstdint>

#include "kernels/gpu/dense/row_part-inl.h"
#include "kernels/gpu/lanes-inl.h"

namespace sluice::kernels::gpu {

// Rows of `to` += rows of x, whose stride may be 0.
struct AddKernel {
  struct Args {
    const float* x;
    float* to;
    std::uint64_t columns, x_stride;
  };
  template <class Warp>
  static SLUICE_GPU void run(const Warp& warp, const Args& args) {
    using Float = typename Warp::Float;
    const RowPart part = RowPart::of(warp.index(), args.columns);
    const float* const x = args.x + part.row * args.x_stride + part.begin;
    float* const to = args.to + part.row * args.columns + part.begin;
    each_number(warp, part, [&](auto at, auto mask) {
      warp.store_if(mask, to, at,
                    warp.load_if(mask, to, at, Float(0.0f)) + warp.load_if(mask, x, at, Float(0.0f)));
    });
  }
};

struct ScaleKernel {
  struct Args {
    float* x;
    std::uint64_t count;
    float factor;
  };
  template <class Warp>
  static SLUICE_GPU void run(const Warp& warp, const Args& args) {
    using Float = typename Warp::Float;
    const RowPart part = RowPart::of(warp.index(), args.count);
    float* const x = args.x + part.begin;
    each_number(warp, part, [&](auto at, auto mask) {
      warp.store_if(mask, x, at, warp.load_if(mask, x, at, Float(0.0f)) * Float(args.factor));
    });
  }
};

struct ClampKernel {
  struct Args {
    float* x;
    std::uint64_t count;
    float limit;
  };
  template <class Warp>
  static SLUICE_GPU void run(const Warp& warp, const Args& args) {
    using Float = typename Warp::Float;
    const RowPart part = RowPart::of(warp.index(), args.count);
    float* const x = args.x + part.begin;
    const Float most(args.limit), least(-args.limit);
    each_number(warp, part, [&](auto at, auto mask) {
      const Float v = warp.load_if(mask, x, at, Float(0.0f));
      const Float low = warp.select(v > most, most, v);  // a NaN stays
      warp.store_if(mask, x, at, warp.select(low < least, least, low));
    });
  }
};

struct ClearKernel {
  struct Args {
    float* x;
    std::uint64_t count;
  };
  template <class Warp>
  static SLUICE_GPU void run(const Warp& warp, const Args& args) {
    const RowPart part = RowPart::of(warp.index(), args.count);
    float* const x = args.x + part.begin;
    each_number(warp, part,
                [&](auto at, auto mask) { warp.store_if(mask, x, at, typename Warp::Float(0.0f)); });
  }
};

struct GateRowsKernel {
  struct Args {
    const float* gate;
    float* x;
    std::uint64_t columns;
  };
  template <class Warp>
  static SLUICE_GPU void run(const Warp& warp, const Args& args) {
    using Float = typename Warp::Float;
    const RowPart part = RowPart::of(warp.index(), args.columns);
    float* const x = args.x + part.row * args.columns + part.begin;
    const Float factor = sigmoid(warp, Float(args.gate[part.row]));
    each_number(warp, part, [&](auto at, auto mask) {
      warp.store_if(mask, x, at, warp.load_if(mask, x, at, Float(0.0f)) * factor);
    });
  }
};

// Rows to rows; with `which`, row r comes from row which[r].
struct CopyRowsKernel {
  struct Args {
    const float* from;
    float* to;
    const std::uint32_t* which;
    std::uint64_t columns, from_stride, to_stride;
  };
  template <class Warp>
  static SLUICE_GPU void run(const Warp& warp, const Args& args) {
    const RowPart part = RowPart::of(warp.index(), args.columns);
    const std::uint64_t row = args.which == nullptr ? part.row : args.which[part.row];
    const float* const from = args.from + row * args.from_stride + part.begin;
    float* const to = args.to + part.row * args.to_stride + part.begin;
    each_number(warp, part, [&](auto at, auto mask) {
      warp.store_if(mask, to, at, warp.load_if(mask, from, at, typename Warp::Float(0.0f)));
    });
  }
};

struct CopyBytesKernel {
  struct Args {
    const std::byte* from;
    std::byte* to;
    std::uint64_t count;
  };
  template <class Warp>
  static SLUICE_GPU void run(const Warp& warp, const Args& args) {
    const RowPart part = RowPart::of(warp.index(), args.count);
    const std::byte* const from = args.from + part.begin;
    std::byte* const to = args.to + part.begin;
    each_number(warp, part, [&](auto at, auto mask) {
      warp.store_byte_if(mask, to, at, warp.load_byte_if(mask, from, at, typename Warp::Word(0)));
    });
  }
};

}  // namespace sluice::kernels::gpu
