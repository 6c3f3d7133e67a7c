#include "engine/plan/lacking_experts.h"

#include <algorithm>

#include "kernels/gpu/gpu_formats.h"
#include "model/architecture.h"
#include "store/checkpoint.h"

namespace sluice::engine {
namespace {

// In which a piece of an expert may be on a device. Null: in a type that has no row.
std::vector<const codec::MatrixFormat*> formats_of(const store::StoredPiece& piece) {
  if (!piece.coded()) return {piece.format};
  if (piece.own_columns) return {&codec::kFormatBf16, &codec::kFormatPacked};
  return {&codec::kFormatBf16};
}

void add_once(std::vector<const codec::MatrixFormat*>& formats, const codec::MatrixFormat* format) {
  if (std::ranges::find(formats, format) == formats.end()) formats.push_back(format);
}

}  // namespace

bool LackingExperts::all() const {
  return any() && std::ranges::all_of(layers, [](std::uint8_t left_out) { return left_out != 0; });
}

std::size_t LackingExperts::layers_there(std::size_t of) const {
  if (!any()) return of;
  return static_cast<std::size_t>(std::ranges::count(layers, 0));
}

LackingExperts experts_lacking(const store::Checkpoint& checkpoint, const model::Model& model,
                               const std::function<bool(const codec::MatrixFormat*)>& reads) {
  std::vector<const codec::MatrixFormat*> lacking;
  std::vector<std::uint8_t> layers;
  for (const model::ExpertPieces& pieces : model.experts) {
    layers.resize(std::max<std::size_t>(layers.size(), pieces.layer + 1));
    for (const store::Piece& piece : pieces.all())
      for (const codec::MatrixFormat* const format : formats_of(checkpoint.locate(piece))) {
        if (reads(format)) continue;
        add_once(lacking, format);
        layers[pieces.layer] = 1;
      }
  }
  LackingExperts experts;
  for (const codec::MatrixFormat* const format : lacking) {
    if (experts.any()) experts.formats += ", ";
    experts.formats += format != nullptr ? format->name : "another type";
  }
  if (experts.any()) experts.layers = std::move(layers);
  return experts;
}

std::vector<const codec::MatrixFormat*> expert_formats_there(const store::Checkpoint& checkpoint,
                                                             const model::Model& model) {
  std::vector<const codec::MatrixFormat*> formats;
  for (const model::ExpertPieces& pieces : model.experts)
    for (const store::Piece& piece : pieces.all())
      for (const codec::MatrixFormat* const format : formats_of(checkpoint.locate(piece)))
        if (format != nullptr && kernels::gpu_multiplies(*format)) add_once(formats, format);
  return formats;
}

}  // namespace sluice::engine
