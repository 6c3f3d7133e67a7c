// Choice tasks by name: how their files are read and how their questions are asked. Prompts are those of
// lm-evaluation-harness 0.4 (docs/eval.md). The table is constant: thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/tasks/choice_item.h"

namespace sluice::eval {

struct ChoiceTask {
  std::string_view name;
  // All items of a file's text, at least one. `file` appears in errors, which name line or entry and field:
  // Error(kInvalid).
  std::vector<ChoiceItem> (*read)(std::string_view text, const std::string& file);
  std::string_view layouts;  // layouts of files that it reads
};

std::span<const ChoiceTask> choice_tasks();
const ChoiceTask& find_choice_task(std::string_view name);  // Error(kUsage) that lists the known names
std::string choice_task_names();                            // "arc-easy, arc-challenge, …"

// The readers of the table, one per file.
std::vector<ChoiceItem> read_arc(std::string_view text, const std::string& file);
std::vector<ChoiceItem> read_hellaswag(std::string_view text, const std::string& file);
std::vector<ChoiceItem> read_openbookqa(std::string_view text, const std::string& file);
std::vector<ChoiceItem> read_boolq(std::string_view text, const std::string& file);

}  // namespace sluice::eval
