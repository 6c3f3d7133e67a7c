// Benchmarks of matrix products: with words, with packed weights, with slices of codes.
#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "codec/matrix_format.h"
#include "codec/slices/int8_matrix.h"
#include "codec/slices/sliced_matrix.h"
#include "kernels/context.h"
#include "kernels_suite.h"

namespace sluice::bench {

// Adds workloads to `suite`, which must outlive it; this object must live until they have run. Each workload
// is checked when it is added: its first and last token must equal the scalar path, bit for bit.
class ProductBench {
 public:
  explicit ProductBench(Suite& suite) : suite_(suite) {}
  ProductBench(const ProductBench&) = delete;
  ProductBench& operator=(const ProductBench&) = delete;

  // `count` matrices per round. `rounded`: with the instruction sets that have instructions for rounded
  // activations.
  void add_matmul(std::size_t tokens, std::size_t count, bool rounded = false);
  // One token, with as many products in one pass of the threads as a layer has.
  void add_vectors(std::size_t count, bool rounded = false);
  // The same matrices as codec `native` stores them.
  void add_packed(std::size_t tokens, std::size_t count, bool rounded = false);
  // The same matrices as family `sliced` stores them, MSB slices or both; with unchanged activations and with
  // their codes.
  void add_sliced(codec::SliceBits bits, std::size_t tokens, std::size_t count);
  // The same matrices as `pack --dense int8` stores them, with both kinds of activations.
  void add_int8(std::size_t tokens, std::size_t count);

 private:
  using Context = kernels::Context;

  // Each matrix in memory of its own; all have the codes of the first.
  struct Slices {
    codec::SlicedShape shape;
    std::size_t each = 0, lsb = 0;  // bytes from one matrix to the next; from it to its LSB slice
    Aligned<std::byte> bytes;
    codec::SlicedView view(std::size_t matrix) const {
      const std::byte* const first = bytes.data() + matrix * each;
      return codec::sliced_view(shape, {first, shape.msb_bytes()}, {first + lsb, shape.lsb_bytes()});
    }
  };

  void multiply(const Context& ctx, std::size_t tokens, std::size_t matrix);
  void multiply_packed(const Context& ctx, std::size_t tokens, std::size_t matrix);
  void multiply_sliced(const Context& ctx, const Slices& slices, codec::SliceView which, std::size_t tokens,
                       std::size_t matrix);
  void multiply_int8(const Context& ctx, std::size_t tokens, std::size_t matrix);
  void pack();
  void code_int8();
  static codec::Int8Shape int8_shape();
  const Slices& slice(codec::SliceBits bits);
  void check_matmul(const Context& ctx, std::size_t tokens,
                    void (ProductBench::*multiply)(const Context&, std::size_t, std::size_t));
  void check_sliced(const Context& ctx, const Slices& slices, codec::SliceView which, std::size_t tokens);

  Suite& suite_;
  Aligned<std::byte> planes_, coded_, int8_;
  std::size_t planes_each_ = 0, coded_each_ = 0;
  codec::PlaneChunk chunk_;
  std::map<unsigned, std::unique_ptr<Slices>> slices_;  // by bits per code
  Aligned<float> packed_, sliced_packed_, y_;
};

}  // namespace sluice::bench
