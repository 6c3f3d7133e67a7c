#include "flags/model_argument.h"

#include <vector>

#include "base/files/file.h"
#include "base/setting.h"
#include "flags/command_line.h"
#include "store/local/local_environment.h"
#include "store/local/local_models.h"
#include "store/local/local_names.h"
#include "streams/standard_error.h"

namespace sluice::app {
namespace {

bool is_name(const std::string& model) { return store::may_be_local_name(model) && !is_there(model); }

}  // namespace

void add_model_argument(Command& command, const std::string& word, std::string& target,
                        const CommonFlags& flags, const std::string& help) {
  command.add_argument(word, Setting::kModel, &target, help)->required();
  take_model_name(command, target, flags);
}

void take_model_name(Command& command, std::string& target, const CommonFlags& flags) {
  command.before([&target, &flags] {
    if (!is_name(target)) return;
    const store::LocalModels here = store::find_local_models(store::local_environment());
    const std::vector<const store::LocalModel*> named = store::local_models_named(here, target);
    if (named.size() != 1 || !named[0]->fault.empty()) return;
    if (!flags.quiet) print_message("sluice: {}: {}", target, named[0]->path);
    target = named[0]->path;
  });
}

void check_model_name(const std::string& model) {
  if (is_name(model))
    throw store::local_name_error(store::find_local_models(store::local_environment()), model);
}

}  // namespace sluice::app
