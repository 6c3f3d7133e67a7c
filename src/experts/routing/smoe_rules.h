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

// Which memory counts, where there is a device.
enum class SmoeResident : std::uint8_t {
  kDevice,  // the device's: experts of the host give way too, those that must be read from disk first
  kMemory,  // both: only experts that must be read from disk give way, first to those on the device
};

// Error(kUsage) for another name.
SmoeResident smoe_resident(std::string_view name);  // device, memory
std::string_view smoe_resident_name(SmoeResident resident);

struct SmoeRules {
  double alpha = 0.25;  // how far above or below the border beta a score may lie; at least 0
  // Experts of few tokens that must be loaded give way to experts that must be loaded for more tokens.
  bool merge = true;
  SmoeRenorm renorm = SmoeRenorm::kModel;
  SmoeResident resident = SmoeResident::kDevice;
  // As the paper prints the rule: shows its defects, and serves nothing else. Sets have any number of
  // experts.
  bool printed = false;

  void validate() const;  // Error(kUsage)
};

}  // namespace sluice::experts
