// The programs whose models are found: where each keeps them, and in which order.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/local/local_environment.h"
#include "store/local/local_search.h"

namespace sluice::store {

struct LocalProgram {
  std::string_view key;    // before a name that models of two programs have
  std::string_view title;  // as people call it
  std::vector<std::string> (*places)(const LocalEnvironment& environment);
  void (*look)(LocalSearch& search, const std::string& place);
};
std::span<const LocalProgram> local_programs();

// One row each.
std::vector<std::string> hub_places(const LocalEnvironment& environment);
void look_in_hub(LocalSearch& search, const std::string& place);
std::vector<std::string> llama_cpp_places(const LocalEnvironment& environment);
void look_in_llama_cpp(LocalSearch& search, const std::string& place);
std::vector<std::string> lm_studio_places(const LocalEnvironment& environment);
void look_in_lm_studio(LocalSearch& search, const std::string& place);
std::vector<std::string> ollama_places(const LocalEnvironment& environment);
void look_in_ollama(LocalSearch& search, const std::string& place);

}  // namespace sluice::store
