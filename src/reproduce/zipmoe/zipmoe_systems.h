// The presets that stand for the systems that ZipMoE compares, as far as this program has them.
#pragma once

#include <string>
#include <vector>

namespace sluice::reproduce {

inline constexpr const char* kPlanned = "z-C+P";  // ZipMoE itself

std::vector<std::string> published_baselines();
// The systems of each comparison; commands of single rows name the same systems.
std::vector<std::string> sweep_systems();  // budgets
std::vector<std::string> ladder_steps();   // the ablation
std::vector<std::string> batch_systems();
std::vector<std::string> length_systems();

}  // namespace sluice::reproduce
