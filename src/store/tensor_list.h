// Look-ups in a list of tensors, shared by both kinds of checkpoint.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/checkpoint.h"

namespace sluice::store {

// `tensors` is ascending by name. Null if the name is missing.
const TensorInfo* find_tensor(const std::vector<TensorInfo>& tensors, std::string_view name);

// The tensor of `piece`; Error(kInvalid) if it does not exist or the range lies outside it. `path` is the
// checkpoint's.
const TensorInfo& checked_tensor(const std::vector<TensorInfo>& tensors, const Piece& piece,
                                 const std::string& path);

// The whole tensor as a piece; Error(kInvalid) if no tensor has that name.
Piece whole_tensor(const std::vector<TensorInfo>& tensors, std::string_view name, const std::string& path);

// The matrix that a range of elements of a tensor is: whole rows of the tensor's columns, else one row.
codec::MatrixShape matrix_shape(const std::vector<std::uint64_t>& tensor, std::uint64_t first,
                                std::uint64_t count);

}  // namespace sluice::store
