#include "model/inventory.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace sluice::model {
namespace {

std::string shape_text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::span<const std::uint64_t> without_leading_ones(const Shape& shape) {
  const auto first = std::ranges::find_if(shape, [](std::uint64_t dimension) { return dimension != 1; });
  return {first, shape.end()};
}

}  // namespace

Inventory::Inventory(const store::Checkpoint& checkpoint, const Description& description)
    : path_(checkpoint.path()),
      description_(description),
      tensors_(checkpoint.tensors()),
      used_(tensors_.size(), false) {
  index_.reserve(tensors_.size());
  for (std::size_t i = 0; i < tensors_.size(); ++i) index_.emplace(tensors_[i].name, i);
}

void Inventory::take(std::string_view name, const Shape& shape) {
  const auto found = index_.find(name);
  if (found == index_.end())
    throw error(ErrorKind::kInvalid, "tensor is missing", name)
        .expected(shape_text(shape))
        .found("no such tensor")
        .fix(fmt::format("download all weight files, and the {} that belongs to them", description_.name));
  const store::TensorInfo& tensor = tensors_[found->second];
  if (!fits(tensor.shape, shape))
    throw error(ErrorKind::kInvalid, fmt::format("tensor has another shape than by {}", description_.name),
                name)
        .expected(shape_text(shape))
        .found(shape_text(tensor.shape))
        .fix(fmt::format("download the {} that belongs to these weights", description_.name));
  if (tensor.format != nullptr)
    check_format(tensor);
  else if (tensor.dtype != DType::kBF16 && tensor.dtype != DType::kF16 && tensor.dtype != DType::kF32)
    throw error(ErrorKind::kUnsupported, "tensor has a type that is not computed with", name)
        .expected("BF16, F16 or F32")
        .found(dtype_name(tensor.dtype))
        .fix("use an unquantised version of this model");
  used_[found->second] = true;
}

bool Inventory::fits(const Shape& found, const Shape& wanted) const {
  return found == wanted || (description_.leading_ones_may_lack &&
                             std::ranges::equal(without_leading_ones(found), without_leading_ones(wanted)));
}

// The matrices of the tensor must be such as can be stored in its format.
void Inventory::check_format(const store::TensorInfo& tensor) const {
  const codec::MatrixFormat& format = *tensor.format;
  const std::uint64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  const std::uint64_t rows = tensor.shape.size() < 2 ? 1 : tensor.shape[tensor.shape.size() - 2];
  if (format.input && format.fits({rows, columns})) return;
  throw error(ErrorKind::kUnsupported, "tensor has a format that is not computed with in this shape",
              tensor.name)
      .expected("rows and columns in whole blocks of " + std::to_string(format.block.rows) + " by " +
                std::to_string(format.block.columns))
      .found(std::string(format.name) + ", " + tensor.shape_text())
      .fix("use an unquantised version of this model");
}

Error Inventory::unknown(const store::TensorInfo& tensor, const ModelConfig& config) const {
  return error(ErrorKind::kInvalid, "tensor is not one of this architecture", tensor.name)
      .expected("only tensors of " + config.model_type + " with " + std::to_string(config.layers) + " layers")
      .found(shape_text(tensor.shape))
      .fix(fmt::format("compare {} with the weight files", description_.name));
}

Error Inventory::error(ErrorKind kind, std::string_view message, std::string_view tensor) const {
  Error error(kind, message);
  error.in(path_ + ": " + std::string(tensor));
  return error;
}

std::uint64_t elements(const Shape& shape) {
  std::uint64_t product = 1;
  for (const std::uint64_t dimension : shape) product *= dimension;
  return product;
}

}  // namespace sluice::model
