#include "eval/tasks/choice_tasks.h"

#include <array>

#include "base/error.h"
#include "base/setting.h"
#include "base/unknown_name.h"

namespace sluice::eval {
namespace {

constexpr std::array<ChoiceTask, 5> kTasks = {{
    {"arc-easy", read_arc, "JSON lines of AI2 or of the Hugging Face hub; the JSON list of LLM-Adapters"},
    {"arc-challenge", read_arc, "the same"},
    {"hellaswag", read_hellaswag, "JSON lines"},
    {"openbookqa", read_openbookqa, "JSON lines of AI2 or of the Hugging Face hub; AI2's .tsv"},
    {"boolq", read_boolq, "JSON lines"},
}};

}  // namespace

std::span<const ChoiceTask> choice_tasks() { return kTasks; }

std::string choice_task_names() {
  std::string names;
  for (const ChoiceTask& task : kTasks) names += (names.empty() ? "" : ", ") + std::string(task.name);
  return names;
}

const ChoiceTask& find_choice_task(std::string_view name) {
  for (const ChoiceTask& task : kTasks)
    if (task.name == name) return task;
  throw unknown_name(Setting::kTask, name, names_in(kTasks), "unknown task");
}

}  // namespace sluice::eval
