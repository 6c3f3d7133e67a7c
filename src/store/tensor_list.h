// What both kinds of checkpoint do with a list of tensors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/checkpoint.h"

namespace sluice::store {

// `tensors` is ascending by name. Null if absent.
const TensorInfo* find_tensor(const std::vector<TensorInfo>& tensors, std::string_view name);

// The tensor of `piece`; Error(kInvalid) if there is none or the range lies outside of it. `path` is the
// checkpoint's.
const TensorInfo& checked_tensor(const std::vector<TensorInfo>& tensors, const Piece& piece,
                                 const std::string& path);

// All of a tensor; Error(kInvalid) if there is none of that name.
Piece whole_tensor(const std::vector<TensorInfo>& tensors, std::string_view name, const std::string& path);

}  // namespace sluice::store
