// `sluice list`: shows the models that lie on this machine, and which of them run here.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "base/shown_text.h"
#include "base/text_table.h"
#include "command.h"
#include "flags/common_flags.h"
#include "setup/model_verdict.h"
#include "store/local/local_environment.h"
#include "store/local/local_models.h"
#include "streams/standard_error.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {
namespace list_command {

// A model, and why it does not run here; empty: it does.
using Judged = std::pair<const store::LocalModel*, std::string>;

std::string kind_text(const store::LocalModel& model) {
  const bool gguf = model.form == store::LocalForm::kGguf;
  const std::string name = gguf ? "GGUF" : "safetensors";
  if (model.files < 2) return name;
  return fmt::format("{}, {} {}", name, model.files, gguf ? "parts" : "files");
}

void print_json(const store::LocalModels& here, const std::vector<Judged>& judged) {
  Json json = {{"models", Json::array()}, {"places", Json::array()}, {"notes", here.notes}};
  for (const auto& [model, why_not] : judged)
    json["models"].push_back({{"name", model->name},
                              {"program", model->program},
                              {"form", store::local_form_name(model->form)},
                              {"files", model->files},
                              {"bytes", model->bytes},
                              {"path", model->path},
                              {"runs", why_not.empty()},
                              {"reason", why_not.empty() ? Json() : Json(why_not)}});
  for (const store::LocalPlace& place : here.places)
    json["places"].push_back({{"program", place.title}, {"path", place.path}, {"there", place.there}});
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

void print_nothing_found(const store::LocalModels& here) {
  std::string places;
  for (const store::LocalPlace& place : here.places)
    places += fmt::format("{}{} ({}{})", places.empty() ? "" : ", ", place.path, place.title,
                          place.there ? "" : ", not there");
  print_wrapped("No models are here. Looked in " + places + ".");
}

// What keeps models from running, each reason once.
void print_reasons(const std::vector<Judged>& judged) {
  std::vector<std::pair<std::string, std::string>> reasons;  // with the names of their models
  for (const auto& [model, why_not] : judged) {
    if (why_not.empty()) continue;
    const auto same = std::ranges::find(reasons, why_not, &std::pair<std::string, std::string>::first);
    if (same == reasons.end())
      reasons.emplace_back(why_not, model->name);
    else
      same->second += ", " + model->name;
  }
  for (const auto& [reason, names] : reasons)
    print_wrapped(fmt::format("Does not run ({}): {}", reason, names));
}

void print_table(const std::vector<Judged>& judged) {
  std::vector<std::vector<std::string>> rows = {{"name", "program", "kind", "size", "runs"}};
  for (const auto& [model, why_not] : judged)
    rows.push_back({escaped_text(model->name), std::string(model->title), kind_text(*model),
                    format_bytes(model->bytes), why_not.empty() ? "yes" : "no"});
  constexpr std::size_t kTitles = 3;  // name, program, kind
  std::cout << text_table(rows, terminal_columns(STDOUT_FILENO, kAnyColumns), kTitles);
}

void list(const CommonFlags& common) {
  const store::LocalModels here = store::find_local_models(store::local_environment());
  std::vector<Judged> judged;
  for (const store::LocalModel& model : here.models) judged.emplace_back(&model, why_not_run(model));
  if (common.json) return print_json(here, judged);
  for (const std::string& note : here.notes)
    if (!common.quiet) write_warning(note);
  if (judged.empty()) return print_nothing_found(here);
  print_table(judged);
  print_reasons(judged);
}

}  // namespace list_command
}  // namespace

void add_list(Command& app) {
  using namespace list_command;
  Command* command =
      app.add_command("list", "Show the models that lie on this machine, and which of them run");
  auto common = std::make_shared<CommonFlags>();
  add_common_flags(*command, *common,
                   {.json = "Print one JSON object", .quiet = "No warnings on standard error"});
  command->footer(
      "Looks, read only, where Hugging Face's tools, llama.cpp, LM Studio and Ollama keep their models. "
      "Every "
      "command takes a name of this table for its MODEL.\n"
      "Examples:\n"
      "  sluice list\n"
      "  sluice list --json\n"
      "  sluice run allenai/OLMoE-1B-7B-0924 -p \"Once upon a time\"");
  command->callback([common] { list(*common); });
}

}  // namespace sluice::app
