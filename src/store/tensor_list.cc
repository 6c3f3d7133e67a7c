#include "store/tensor_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace sluice::store {

std::uint64_t TensorInfo::elements() const {
  std::uint64_t product = 1;
  for (const std::uint64_t dimension : shape) product *= dimension;
  return product;
}

Bytes TensorInfo::bytes_of(std::uint64_t elements) const { return elements * dtype_bytes(dtype); }

std::optional<Bytes> TensorInfo::checked_bytes() const {
  Bytes bytes = bytes_of(1);
  bool zero = false;
  for (const std::uint64_t dimension : shape) {
    if (dimension == 0)
      zero = true;
    else if (__builtin_mul_overflow(bytes, dimension, &bytes))
      return std::nullopt;
  }
  return zero ? 0 : bytes;
}

std::string TensorInfo::shape_text() const { return fmt::format("[{}]", fmt::join(shape, ", ")); }

const TensorInfo* find_tensor(const std::vector<TensorInfo>& tensors, std::string_view name) {
  const auto at = std::lower_bound(
      tensors.begin(), tensors.end(), name,
      [](const TensorInfo& tensor, std::string_view wanted) { return tensor.name < wanted; });
  return at != tensors.end() && at->name == name ? &*at : nullptr;
}

const TensorInfo& checked_tensor(const std::vector<TensorInfo>& tensors, const Piece& piece,
                                 const std::string& path) {
  const TensorInfo* tensor = find_tensor(tensors, piece.tensor);
  if (tensor == nullptr) {
    throw Error(ErrorKind::kInvalid, fmt::format("the checkpoint has no tensor \"{}\"", piece.tensor))
        .in(path)
        .fix("download all weight files, and the config.json that belongs to them");
  }
  const std::uint64_t elements = tensor->elements();
  if (piece.first_element > elements || piece.elements > elements - piece.first_element) {
    throw Error(ErrorKind::kInvalid, fmt::format("a piece lies outside of tensor \"{}\"", piece.tensor))
        .in(path)
        .expected(fmt::format("at most {} elements", elements))
        .found(fmt::format("{} from element {}", piece.elements, piece.first_element))
        .fix("download the config.json that belongs to these weights");
  }
  return *tensor;
}

Piece whole_tensor(const std::vector<TensorInfo>& tensors, std::string_view name, const std::string& path) {
  const TensorInfo& tensor = checked_tensor(tensors, {std::string(name), 0, 0}, path);
  return {tensor.name, 0, tensor.elements()};
}

codec::MatrixShape matrix_shape(const std::vector<std::uint64_t>& tensor, std::uint64_t first,
                                std::uint64_t count) {
  const std::uint64_t columns = tensor.empty() ? 0 : tensor.back();
  if (columns == 0 || first % columns != 0 || count % columns != 0) return {1, count};
  return {count / columns, columns};
}

}  // namespace sluice::store
