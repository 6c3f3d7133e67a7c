// What a forward pass asks of the unit that computes its dense part: the host, or a device. Operands are
// addresses in the unit's memory; operations are done in the order in which they are asked for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/matrix_format.h"
#include "device/link.h"
#include "kernels/attention/attention.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/ops/floats.h"
#include "kernels/ops/gating.h"

namespace sluice::kernels {

// Operations as plain values. Each is the function of its name in this layer, with the same bits; matrices
// are references to the unit's memory, and outlive what is asked for.
namespace op {

struct RmsNorm {  // rms_norm()
  Floats x;
  std::size_t rows = 1, columns = 0, x_stride = 0;
  Vector weight;
  float eps = 0;
  Floats y;
  std::size_t y_stride = 0;
};

struct Arrange {  // InputFormRow::arrange
  codec::InputForm form{};
  Floats x;
  std::size_t tokens = 1, columns = 0, x_stride = 0;
  Floats arranged;
  bool exact = false;  // never rounded: what routers read
};

struct Matmul {  // matmul()
  Floats x;
  std::size_t tokens = 1;
  const codec::MatrixRef* weight = nullptr;
  Vector bias = {};
  Floats y;
  std::size_t y_stride = 0;
  bool exact = false;
};

struct MatmulTransposed {  // matmul_transposed()
  Floats x;
  std::size_t tokens = 1, x_stride = 0;
  codec::MatrixRef weight;
  Floats y;
  std::size_t y_stride = 0;
};

// As Arrange and Matmul with a matrix that is a part of another, for rows that are not arranged yet.
struct Project {
  Floats x;
  std::size_t tokens = 1, x_stride = 0;
  codec::MatrixRef weight;
  Vector bias = {};
  Floats arranged;  // room
  Floats y;
  std::size_t y_stride = 0;
};

struct VectorMatmul {  // a VectorProduct without a gate
  Floats x;
  const codec::MatrixRef* weight = nullptr;
  Floats y;
  Vector bias = {};
};
struct VectorMatmuls {  // multiply_vectors()
  std::array<VectorMatmul, 3> products;
};

struct Mlp {                        // mlp()
  codec::MatrixRef gate, up, down;  // gate: may be empty
  Vector gate_bias = {}, up_bias = {}, down_bias = {};
  Gating gating = {};
  InputFloats inputs{};  // (tokens, d) in the forms of gate and up
  std::size_t tokens = 1;
  Floats gate_room, up_room, inner;  // MlpScratch
  Floats out;                        // (tokens, d)
};

struct Rope {  // rope() of the heads of each token
  RopeForm form{};
  Floats x;
  std::size_t tokens = 1, token_stride = 0, heads = 0, head_stride = 0, half = 0;
  Floats cos, sin;  // (tokens, half)
};

struct StoreCache {  // store_cache() of positions that follow each other
  Floats x;
  std::size_t tokens = 1, x_stride = 0, first_position = 0;
  CacheRows to;
};

struct Attention {  // attention()
  AttentionShape shape;
  Floats q;
  std::size_t tokens = 1, first_position = 0;
  CacheRows keys, values;
  Floats out;
  Floats scratch;
  std::size_t scratch_floats = 0;
  Floats bias = {};  // ScoreBias; null: none
  std::size_t bias_stride = 0, bias_center = 0;
  Vector sinks = {};  // (heads); empty: none
};

struct Add {  // to += x
  Floats x;
  std::size_t count = 0;
  Floats to;
};

struct AddToRows {  // each row of `to` += x
  Floats x;
  std::size_t rows = 1, columns = 0;
  Floats to;
};

struct Scale {
  float factor = 1;
  std::size_t count = 0;
  Floats x;
};

struct Clamp {  // to ±limit
  float limit = 0;
  std::size_t count = 0;
  Floats x;
};

struct Clear {  // zeros
  std::size_t count = 0;
  Floats x;
};

struct GateRows {  // row r *= sigmoid(gate[r])
  Floats gate;
  std::size_t rows = 1, columns = 0;
  Floats x;
};

struct CopyRows {
  Floats from;
  std::size_t rows = 1, columns = 0, from_stride = 0;
  Floats to;
  std::size_t to_stride = 0;
};

struct GatherRows {  // row r of `to` = row which[r] of `from`, which is read when this is asked for
  Floats from;
  std::size_t from_rows = 0, columns = 0;  // rows lie one after the other in both
  std::span<const std::uint32_t> which;
  Floats to;
};

struct CopyCacheRows {  // rows of a cache to other rows of it, as they are
  CacheRows in;         // its table of blocks does not count: rows are named, not positions
  std::size_t from = 0, rows = 1, to = 0;  // REQUIRES: no row is both
};

struct WeightedRow {  // to[token] = fma(weight, row, to[token])
  std::uint32_t token = 0, row = 0;
  float weight = 0;
};
struct CombineRows {  // add_scaled() in the order of `sums`, which is read when this is asked for
  Floats rows;
  std::size_t row_count = 0, columns = 0;
  std::span<const WeightedRow> sums;
  Floats to;
  std::size_t tokens = 1;
};

}  // namespace op

// Thread-compatible. A unit that is not the host computes later, so an operation's error comes out of
// receive() or settle(), and what it reads must be left alone until then.
class Ops {
 public:
  virtual ~Ops() = default;
  // Whether the unit's memory is the host's: then its numbers are pointers of ours, too, and an operation is
  // over when its call returns.
  virtual bool on_host() const = 0;

  virtual void run(const op::RmsNorm& op) = 0;
  virtual void run(const op::Arrange& op) = 0;
  virtual void run(const op::Matmul& op) = 0;
  virtual void run(const op::MatmulTransposed& op) = 0;
  virtual void run(const op::Project& op) = 0;
  virtual void run(const op::VectorMatmuls& op) = 0;
  virtual void run(const op::Mlp& op) = 0;
  virtual void run(const op::Rope& op) = 0;
  virtual void run(const op::StoreCache& op) = 0;
  virtual void run(const op::Attention& op) = 0;
  virtual void run(const op::Add& op) = 0;
  virtual void run(const op::AddToRows& op) = 0;
  virtual void run(const op::Scale& op) = 0;
  virtual void run(const op::Clamp& op) = 0;
  virtual void run(const op::Clear& op) = 0;
  virtual void run(const op::GateRows& op) = 0;
  virtual void run(const op::CopyRows& op) = 0;
  virtual void run(const op::CopyCacheRows& op) = 0;
  virtual void run(const op::CombineRows& op) = 0;

  // Numbers of the host go to the unit, before what is asked for behind. Nothing happens where both are the
  // same numbers already. REQUIRES: no operation that is not over uses `to`; `from` stays until the
  // next receive() or settle().
  virtual void send(std::span<const float> from, Floats to, device::Traffic traffic) = 0;
  // Numbers of the unit come to the host, as they are behind everything that was asked for; waits for that.
  // Nothing happens where both are the same numbers. Throws what an operation has thrown.
  virtual void receive(Floats from, std::span<float> to) = 0;
  // Waits until everything that was asked for is over; throws what it has thrown.
  virtual void settle() = 0;
  // The same after an error, which is known: throws nothing.
  virtual void abandon() noexcept = 0;
};

}  // namespace sluice::kernels
