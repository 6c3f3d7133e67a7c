// How SMoE's expert-cache router replaces experts (smoe_choice.h, router_smoe.cc). SMoE (arXiv 2508.18983,
// Alg. 1 and §5.4); SPEC §2.2.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::experts {

// How the weights of a set follow from its scores.
enum class SmoeRenorm : std::uint8_t {
  kModel,  // the model's rule on the final set
  kMass,   // the weights sum up to what those of the model's own choice would
  kNone,   // the scores themselves
};

// Error(kUsage) for another name.
SmoeRenorm smoe_renorm(std::string_view name);  // model, mass, none
std::string_view smoe_renorm_name(SmoeRenorm renorm);

struct SmoeRules {
  double alpha = 0.25;  // how far above or below the border beta a score may lie; at least 0
  // Experts of few tokens that must be loaded give way to experts that must be loaded for more tokens.
  bool merge = true;
  SmoeRenorm renorm = SmoeRenorm::kModel;
  // As the paper prints the rule: shows its defects, and serves nothing else. Sets have any number of
  // experts.
  bool printed = false;

  void validate() const;  // Error(kUsage)
};

}  // namespace sluice::experts
