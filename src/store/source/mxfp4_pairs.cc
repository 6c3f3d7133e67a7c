#include "store/source/mxfp4_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "store/tensor_list.h"

namespace sluice::store {
namespace {

constexpr std::string_view kCodes = "_blocks", kScales = "_scales";
constexpr std::uint64_t kGroupBytes = 16, kGroupElements = 32;  // of one scale

// (…, rows, groups of a row, 16)
bool are_codes(const TensorInfo& tensor) {
  return tensor.dtype == DType::kU8 && tensor.name.ends_with(kCodes) && tensor.shape.size() >= 3 &&
         tensor.shape.back() == kGroupBytes && tensor.elements() != 0;
}

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

PlacedTensors with_mxfp4_pairs(const Weights& weights, const std::string& path) {
  std::vector<const TensorInfo*> scales(weights.tensors.size(), nullptr);  // of codes
  std::vector<bool> taken(weights.tensors.size(), false);                  // scales
  for (std::size_t i = 0; i < weights.tensors.size(); ++i) {
    if (!are_codes(weights.tensors[i])) continue;
    scales[i] = &scales_of(weights, weights.tensors[i], path);
    taken[static_cast<std::size_t>(scales[i] - weights.tensors.data())] = true;
  }
  struct Placed {
    TensorInfo info;
    std::array<TensorPlace, codec::kMostPlanes> planes = {};
  };
  std::vector<Placed> all;
  for (std::size_t i = 0; i < weights.tensors.size(); ++i) {
    if (taken[i]) continue;
    Placed& placed = all.emplace_back(Placed{weights.tensors[i]});
    placed.planes[0] = weights.places[i];
    if (scales[i] == nullptr) continue;
    placed.planes[1] = weights.places[static_cast<std::size_t>(scales[i] - weights.tensors.data())];
    placed.info = {stem_of(placed.info), DType::kF32, scales[i]->shape, &codec::kFormatMxfp4Pair};
    placed.info.shape.back() *= kGroupElements;
  }
  std::ranges::stable_sort(all, {},
                           [](const Placed& placed) -> const std::string& { return placed.info.name; });
  PlacedTensors result;
  for (Placed& placed : all) {
    if (!result.tensors.empty() && result.tensors.back().name == placed.info.name)
      throw Error(ErrorKind::kInvalid, "a tensor is there twice: as it is, and in MXFP4")
          .in(path + ": " + placed.info.name)
          .fix("leave one of the two out");
    result.tensors.push_back(std::move(placed.info));
    result.planes.push_back(placed.planes);
  }
  return result;
}

}  // namespace sluice::store
