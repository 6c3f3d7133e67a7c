// All experts of a model, by id: their layouts, their sizes, and what is in memory of each. Only for
// ExpertStore's own files.
#pragma once

#include <cstdint>
#include <vector>

#include "experts/core/ids.h"
#include "experts/schedule/expert_costs.h"
#include "fetch/memory/expert_facts.h"
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
  const ExpertFacts& facts() const { return facts_; }
  // Costs that hold until some are measured: a disk of 1.5 GB/s, 1 GB/s of exponents decoded by each of
  // `threads`, 10 GB/s of weights computed with.
  experts::ExpertCosts assumed_costs(unsigned threads) const;

 private:
  void add(const store::Checkpoint& checkpoint, const model::Model& model, const model::ExpertPieces& pieces);
  void add_format(const codec::MatrixFormat* format);

  std::vector<ExpertInMemory> experts_;
  std::vector<std::uint32_t> layer_begin_;  // experts_ index of the first expert of each sparse layer
  ExpertFacts facts_;
};

}  // namespace sluice::fetch
