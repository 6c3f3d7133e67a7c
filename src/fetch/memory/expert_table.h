// All experts of a model, by id: their layouts, their sizes, and what is in memory of each. Only for
// ExpertStore's own files.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/core/ids.h"
#include "experts/schedule/expert_costs.h"
#include "fetch/memory/expert_in_memory.h"
#include "model/architecture.h"
#include "store/checkpoint.h"

namespace sluice::fetch {

// Thread-compatible. Its experts never move.
class ExpertTable final : public experts::ExpertSizes {
 public:
  ExpertTable(const store::Checkpoint& checkpoint, const model::Model& model);

  ExpertInMemory& operator[](experts::ExpertId id) { return experts_[index(id)]; }
  const ExpertInMemory& operator[](experts::ExpertId id) const { return experts_[index(id)]; }
  std::size_t index(experts::ExpertId id) const { return layer_begin_[id.layer] + id.index; }
  std::size_t size() const { return experts_.size(); }
  auto begin() { return experts_.begin(); }
  auto end() { return experts_.end(); }
  auto begin() const { return experts_.begin(); }
  auto end() const { return experts_.end(); }

  // Sizes as residency counts them: those that are charged, so that logical and physical bytes agree.
  experts::ExpertBytes bytes(experts::ExpertId id) const override;
  bool all_split() const { return all_split_; }
  bool named_parts() const { return named_parts_; }  // PartRules::named_parts of all
  bool can_be_packed() const { return can_be_packed_; }
  // The formats that experts' matrices have in views, each once.
  std::span<const codec::MatrixFormat* const> formats() const { return formats_; }
  // The largest of any expert: bytes read, resident bytes, and bytes of all buffers on its way.
  Bytes largest_read() const { return largest_read_; }
  Bytes largest_view() const { return largest_view_; }
  Bytes largest_staging() const { return largest_staging_; }
  // Costs that hold until some are measured: a disk of 1.5 GB/s, 1 GB/s of exponents decoded by each of
  // `threads`, 10 GB/s of weights computed with.
  experts::ExpertCosts assumed_costs(unsigned threads) const;

 private:
  void add(const store::Checkpoint& checkpoint, const model::Model& model, const model::ExpertPieces& pieces);

  std::vector<ExpertInMemory> experts_;
  std::vector<std::uint32_t> layer_begin_;  // experts_ index of the first expert of each sparse layer
  void add_format(const codec::MatrixFormat* format);

  std::vector<const codec::MatrixFormat*> formats_;
  Bytes largest_read_ = 0, largest_view_ = 0, largest_staging_ = 0;
  bool all_split_ = true, can_be_packed_ = true, named_parts_ = false;
};

}  // namespace sluice::fetch
