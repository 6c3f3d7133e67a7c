#include "store/source/gguf_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/shown_text.h"

namespace sluice::store {
namespace {

void check_type(const std::string& path, const GgufTensor& tensor) {
  const GgufType& type = *tensor.type;
  if (type.format != nullptr || type.words) return;
  throw Error(ErrorKind::kUnsupported, "a tensor has a type that is not computed with")
      .in(fmt::format("{}: {}", path, shown_text(tensor.name)))
      .expected("a type of docs/formats.md")
      .found(type.name)
      .fix("use a file of this model with other types, such as Q4_K_M or Q8_0");
}

TensorInfo read_tensor_of(const GgufTensor& tensor) {
  const GgufType& type = *tensor.type;
  return {.name = tensor.name,
          .dtype = type.words.value_or(DType::kF32),
          .shape = tensor.shape,
          .format = type.words ? nullptr : type.format};
}

}  // namespace

TensorInfo stored_tensor(const GgufTensor& tensor) {
  const GgufType& type = *tensor.type;
  TensorInfo stored{tensor.name, type.words.value_or(DType::kU8), tensor.shape};
  if (!type.words) stored.shape.back() = stored.shape.back() / type.elements * type.bytes;
  return stored;
}

GgufWeights gguf_weights(const std::vector<GgufPart>& parts) {
  GgufWeights result;
  std::vector<std::pair<const GgufTensor*, TensorPlace>> all;
  for (const GgufPart& part : parts) {
    const auto file = static_cast<std::uint32_t>(result.weights.files.size());
    for (const GgufTensor& tensor : part.header.tensors) {
      check_type(part.path, tensor);
      all.emplace_back(&tensor, TensorPlace{file, tensor.offset});
    }
    result.weights.files.push_back({std::filesystem::path(part.path).filename().string(), part.size});
  }
  std::ranges::sort(all, {}, [](const auto& one) -> const std::string& { return one.first->name; });
  for (const auto& [tensor, place] : all) {
    result.tensors.planes.push_back({static_cast<std::uint32_t>(result.weights.tensors.size())});
    result.tensors.tensors.push_back(read_tensor_of(*tensor));
    result.weights.tensors.push_back(stored_tensor(*tensor));
    result.weights.places.push_back(place);
  }
  return result;
}

}  // namespace sluice::store
