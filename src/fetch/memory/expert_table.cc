#include "fetch/memory/expert_table.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::fetch {

ExpertTable::ExpertTable(const store::Checkpoint& checkpoint, const model::Model& model) {
  experts_.reserve(model.experts.size());
  for (const model::ExpertPieces& pieces : model.experts) add(checkpoint, model, pieces);
}

void ExpertTable::add(const store::Checkpoint& checkpoint, const model::Model& model,
                      const model::ExpertPieces& pieces) {
  if (pieces.index == 0) layer_begin_.push_back(static_cast<std::uint32_t>(experts_.size()));
  SLUICE_CHECK(pieces.layer + 1 == layer_begin_.size() &&
               experts_.size() == layer_begin_.back() + pieces.index);
  std::vector<store::StoredPiece> stored;
  for (const store::Piece& piece : pieces.all()) stored.push_back(checkpoint.locate(piece));
  ExpertInMemory& expert = experts_.emplace_back();
  expert.id = {static_cast<std::uint16_t>(pieces.layer), static_cast<std::uint16_t>(pieces.index)};
  expert.layout = lay_out_expert(stored);
  expert.hidden = model.config.hidden;
  const ExpertLayout& layout = expert.layout;
  const bool names_parts = layout.rules->named_parts;
  SLUICE_CHECK(experts_.size() == 1 || facts_.sliced == names_parts, "experts of two families");
  facts_.sliced = names_parts;
  facts_.largest_read = std::max(facts_.largest_read, layout.read_bytes());
  facts_.largest_base = std::max(facts_.largest_base, layout.base.bytes);
  facts_.largest_rest = std::max(facts_.largest_rest, layout.rest.bytes);
  facts_.largest_resident = std::max(facts_.largest_resident, layout.largest_view());
  facts_.largest_buffers =
      std::max(facts_.largest_buffers, layout.read_bytes() + (layout.merged() ? layout.view_bytes : 0));
  facts_.split &= std::ranges::all_of(layout.pieces, &PiecePlace::coded);
  facts_.can_be_packed &= std::ranges::all_of(layout.pieces, &PiecePlace::own_columns);
  for (const PiecePlace& piece : layout.pieces) {
    add_format(piece.view_format());
    if (piece.own_columns) add_format(piece.format);
  }
}

void ExpertTable::add_format(const codec::MatrixFormat* format) {
  if (std::ranges::find(facts_.formats, format) == facts_.formats.end()) facts_.formats.push_back(format);
}

experts::ExpertBytes ExpertTable::bytes(experts::ExpertId id) const {
  const ExpertLayout& layout = (*this)[id].layout;
  return layout.rules->bytes(layout.base.bytes, layout.rest.bytes, layout.view_bytes);
}

experts::ExpertCosts ExpertTable::assumed_costs(unsigned threads) const {
  experts::ExpertCosts costs;
  if (experts_.empty() || experts_[0].layout.pieces.empty()) return costs;
  const ExpertLayout& layout = experts_[0].layout;
  const PiecePlace& piece = layout.pieces[0];
  costs.fetch.chunks = static_cast<unsigned>(piece.chunks.size());
  costs.fetch.workers = threads;
  costs.fetch.u = static_cast<double>(piece.planes[0].bytes) / 1.5e9;
  if (!piece.chunks.empty()) {
    costs.fetch.v = static_cast<double>(piece.chunks[0].bytes) / 1.5e9;
    costs.fetch.c = static_cast<double>(piece.chunks[0].count) / 1e9;
  }
  costs.run.fixed = static_cast<double>(layout.largest_view()) / 10e9;
  costs.run.per_token = costs.run.fixed / 8;
  return costs;
}

}  // namespace sluice::fetch
