// Kernels of which one operation leaves a wrong bit, or fails: for tests of self checks.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "base/error.h"
#include "kernels/ops/around_kernels.h"

namespace sluice::kernels {

enum class Operation {
  kRmsNorm,
  kArrange,
  kMatmul,
  kMatmulTransposed,
  kProject,
  kVectorMatmuls,
  kMlp,
  kRope,
  kStoreCache,
  kAttention,
  kAdd,
  kAddToRows,
  kScale,
  kClamp,
  kClear,
  kGateRows,
  kCopyRows,
  kGatherRows,
  kCopyCacheRows,
  kCombineRows
};
inline constexpr int kOperations = 20;

class WrongKernels final : public AroundKernels<WrongKernels> {
 public:
  // `format`: matrices in others are multiplied as they should be; null: none is.
  WrongKernels(std::unique_ptr<UnitKernels> inner, Operation wrong,
               const codec::MatrixFormat* format = nullptr, bool throws = false)
      : AroundKernels(std::move(inner)), wrong_(wrong), format_(format), throws_(throws) {}

  template <class Op>
  void around(const device::Access& access, const Op& op) {
    const Result result = result_of(op);
    const bool meant = result.operation == wrong_ && result.at &&
                       (format_ == nullptr || result.format == nullptr || result.format == format_);
    if (meant && throws_) throw Error(ErrorKind::kIo, "the launch was refused");
    inner().run(access, op);
    if (meant) *access.data(result.at, 1) ^= std::byte{1};
  }

 private:
  struct Result {
    Operation operation;
    device::Address at;
    const codec::MatrixFormat* format = nullptr;
  };
  static Result result_of(const op::RmsNorm& op) { return {Operation::kRmsNorm, op.y.at}; }
  static Result result_of(const op::Arrange& op) { return {Operation::kArrange, op.arranged.at}; }
  static Result result_of(const op::Matmul& op) { return {Operation::kMatmul, op.y.at, op.weight->format}; }
  static Result result_of(const op::MatmulTransposed& op) {
    return {Operation::kMatmulTransposed, op.y.at, op.weight.format};
  }
  static Result result_of(const op::Project& op) { return {Operation::kProject, op.y.at, op.weight.format}; }
  static Result result_of(const op::VectorMatmuls& op) {
    return {Operation::kVectorMatmuls, op.products[0].y.at, op.products[0].weight->format};
  }
  static Result result_of(std::span<const op::Mlp> mlps) {
    return {Operation::kMlp, mlps.empty() ? device::Address{} : mlps.back().out.at,
            mlps.empty() ? nullptr : mlps.back().up.format};
  }
  static Result result_of(const op::Rope& op) { return {Operation::kRope, op.x.at}; }
  static Result result_of(const op::StoreCache& op) {
    return {Operation::kStoreCache, op.to.data + op.to.row_of(op.first_position) * op.to.row_bytes()};
  }
  static Result result_of(const op::Attention& op) { return {Operation::kAttention, op.out.at}; }
  static Result result_of(const op::Add& op) { return {Operation::kAdd, op.to.at}; }
  static Result result_of(const op::AddToRows& op) { return {Operation::kAddToRows, op.to.at}; }
  static Result result_of(const op::Scale& op) { return {Operation::kScale, op.x.at}; }
  static Result result_of(const op::Clamp& op) { return {Operation::kClamp, op.x.at}; }
  static Result result_of(const op::Clear& op) { return {Operation::kClear, op.x.at}; }
  static Result result_of(const op::GateRows& op) { return {Operation::kGateRows, op.x.at}; }
  static Result result_of(const op::CopyRows& op) { return {Operation::kCopyRows, op.to.at}; }
  static Result result_of(const op::GatherRows& op) { return {Operation::kGatherRows, op.to.at}; }
  static Result result_of(const op::CopyCacheRows& op) {
    return {Operation::kCopyCacheRows, op.in.data + op.to * op.in.row_bytes()};
  }
  static Result result_of(const op::CombineRows& op) { return {Operation::kCombineRows, op.to.at}; }

  const Operation wrong_;
  const codec::MatrixFormat* const format_;
  const bool throws_;
};

}  // namespace sluice::kernels
