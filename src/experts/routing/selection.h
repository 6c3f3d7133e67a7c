// The model's own choice of experts for one token, and the weights of a chosen set: shared by all routers.
// SPEC §0, §9.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/routing/router.h"

namespace sluice::experts {

struct ScoredExpert {
  float score = 0;
  std::uint32_t id = 0;
};

// Thread-compatible.
class OwnSelection {
 public:
  explicit OwnSelection(const SelectRule& rule);  // Error(kInvalid) if the rule contradicts itself
  const SelectRule& rule() const { return rule_; }

  // Error(kInvalid) if the rule cannot select among these experts.
  void check(const ScoresView& view) const;
  // The top-k of one token within its best groups: score descending, id ascending. Ignores capacity. Valid
  // until the next call. Error(kInvalid) for a score that is NaN or infinite.
  std::span<const ScoredExpert> select(const ScoresView& view, std::uint32_t token);
  // Appends the experts of the last token's best groups, ascending; no others may be selected.
  void append_selectable(std::vector<std::uint32_t>& out) const;

 private:
  SelectRule rule_;
  std::size_t group_size_ = 0;
  std::vector<ScoredExpert> best_, best_groups_;
};

// Appends the choices of one token, ascending in id like `set`, with the model's weights.
void append_choices(const CombineRule& rule, std::span<const ScoredExpert> set, std::vector<Choice>& out);

}  // namespace sluice::experts
