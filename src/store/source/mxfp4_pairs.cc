#include "store/source/mxfp4_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "store/tensor_list.h"

namespace sluice::store {
namespace {

constexpr std::string_view kCodes = "_blocks", kScales = "_scales";
// Elements that share a scale, and the bytes of their codes.
std::uint64_t group_elements() { return codec::kFormatMxfp4Pair.block.columns; }
Bytes group_bytes() { return codec::kFormatMxfp4Pair.plane_bytes({1, group_elements()}, 0); }

std::string stem_of(const TensorInfo& codes) {
  return codes.name.substr(0, codes.name.size() - kCodes.size());
}

const TensorInfo& scales_of(const Weights& weights, const TensorInfo& codes, const std::string& path) {
  const std::string name = stem_of(codes) + std::string(kScales);
  TensorInfo expected = {name, DType::kU8, codes.shape, nullptr};
  expected.shape.pop_back();
  const TensorInfo* const scales = find_tensor(weights.tensors, name);
  if (scales != nullptr && scales->dtype == expected.dtype && scales->shape == expected.shape) return *scales;
  throw Error(ErrorKind::kInvalid, "matrices in MXFP4 need their scales")
      .in(path + ": " + codes.name)
      .expected(fmt::format("{} of type U8, {}", name, expected.shape_text()))
      .found(scales == nullptr ? "no such tensor"
                               : fmt::format("{}, {}", dtype_name(scales->dtype), scales->shape_text()))
      .fix("download all weight files of this model");
}

}  // namespace

bool are_mxfp4_codes(const TensorInfo& tensor) {
  return tensor.dtype == DType::kU8 && tensor.name.ends_with(kCodes) && tensor.shape.size() >= 3 &&
         tensor.shape.back() == group_bytes() && tensor.elements() != 0;
}

TensorInfo mxfp4_pair_of(const TensorInfo& codes) {
  TensorInfo pair = {stem_of(codes), DType::kF32, codes.shape, &codec::kFormatMxfp4Pair};
  pair.shape.pop_back();
  pair.shape.back() *= group_elements();
  return pair;
}

ReadTensors with_mxfp4_pairs(const Weights& weights, const std::string& path) {
  const auto index_of = [&](const TensorInfo& tensor) {
    return static_cast<std::uint32_t>(&tensor - weights.tensors.data());
  };
  std::vector<const TensorInfo*> scales(weights.tensors.size(), nullptr);  // the scales of codes
  std::vector<bool> taken(weights.tensors.size(), false);                  // scales
  for (std::size_t i = 0; i < weights.tensors.size(); ++i) {
    if (!are_mxfp4_codes(weights.tensors[i])) continue;
    scales[i] = &scales_of(weights, weights.tensors[i], path);
    taken[index_of(*scales[i])] = true;
  }
  struct Read {
    TensorInfo info;
    std::array<std::uint32_t, codec::kMostPlanes> planes = {};
  };
  std::vector<Read> all;
  for (const TensorInfo& tensor : weights.tensors) {
    const std::uint32_t index = index_of(tensor);
    if (taken[index]) continue;
    Read& read = all.emplace_back(Read{tensor});
    read.planes[0] = index;
    if (scales[index] == nullptr) continue;
    read.planes[1] = index_of(*scales[index]);
    read.info = mxfp4_pair_of(tensor);
  }
  std::ranges::stable_sort(all, {}, [](const Read& read) -> const std::string& { return read.info.name; });
  ReadTensors result;
  for (Read& read : all) {
    if (!result.tensors.empty() && result.tensors.back().name == read.info.name)
      throw Error(ErrorKind::kInvalid, "a tensor is there twice: as it is, and in MXFP4")
          .in(path + ": " + read.info.name)
          .fix("leave one of the two out");
    result.tensors.push_back(std::move(read.info));
    result.planes.push_back(read.planes);
  }
  return result;
}

}  // namespace sluice::store
