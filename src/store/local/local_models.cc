#include "store/local/local_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/files/file.h"
#include "store/local/local_programs.h"
#include "store/local/local_search.h"

namespace sluice::store {
namespace {

constexpr LocalProgram kPrograms[] = {
    {"huggingface", "Hugging Face", hub_places, look_in_hub},
    {"llama.cpp", "llama.cpp", llama_cpp_places, look_in_llama_cpp},
    {"lm-studio", "LM Studio", lm_studio_places, look_in_lm_studio},
    {"ollama", "Ollama", ollama_places, look_in_ollama},
};

// Each model has a name of its own. Where programs have the same one, theirs stands before it; where one
// program has it twice, the place that it looks at first counts.
void tell_apart(LocalModels& found) {
  std::set<std::pair<std::string_view, std::string>> seen;
  std::erase_if(found.models, [&](const LocalModel& model) {
    if (seen.emplace(model.program, model.own_name).second) return false;
    found.notes.push_back(
        fmt::format("{} is left out: {} has another {}", model.path, model.title, model.own_name));
    return true;
  });
  std::map<std::string, int> programs;
  for (const LocalModel& model : found.models) ++programs[model.own_name];
  for (LocalModel& model : found.models)
    if (programs[model.own_name] > 1) model.name = fmt::format("{}:{}", model.program, model.own_name);
  std::ranges::sort(found.models, {}, &LocalModel::name);
}

}  // namespace

std::span<const LocalProgram> local_programs() { return kPrograms; }

std::string_view local_form_name(LocalForm form) { return form == LocalForm::kGguf ? "gguf" : "safetensors"; }

LocalModels find_local_models(const LocalEnvironment& environment, const LocalLimits& limits) {
  LocalSearch search(limits);
  for (const LocalProgram& program : local_programs()) {
    search.begin(program.key, program.title);
    for (const std::string& place : program.places(environment)) {
      search.found.places.push_back({program.title, place, is_there(place)});
      program.look(search, place);
    }
  }
  tell_apart(search.found);
  return std::move(search.found);
}

}  // namespace sluice::store
