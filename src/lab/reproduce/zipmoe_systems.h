// Which presets stand for the systems that ZipMoE compares: those of them that this program has.
#pragma once

#include <string>
#include <vector>

namespace sluice::lab {

inline constexpr const char* kPlanned = "z-C+P";  // ZipMoE itself

std::vector<std::string> published_baselines();
// Who is compared for what; commands of single rows name the same.
std::vector<std::string> sweep_systems();  // budgets
std::vector<std::string> ladder_steps();   // the ablation
std::vector<std::string> batch_systems();
std::vector<std::string> length_systems();

}  // namespace sluice::lab
