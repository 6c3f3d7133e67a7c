// The model that a command takes: a path, or the name of one that lies on this machine, as `sluice list`
// shows it.
#pragma once

#include <string>

#include "flags/common_flags.h"

namespace sluice::app {

class Command;

// Declares the argument `word`, which must be given, by its place or by the flag for it. A name becomes the
// path of its model before the command begins, and that path is told, unless the user wants quiet. What is no
// name of one model stays as it is. `target` and `flags` must outlive `command`.
void add_model_argument(Command& command, const std::string& word, std::string& target,
                        const CommonFlags& flags, const std::string& help);
// The same of an option's value, which may be empty.
void take_model_name(Command& command, std::string& target, const CommonFlags& flags);

// Error(kNotFound) or (kUsage) for what is neither there nor the name of one model. Those who open a model
// ask first; a path that is not there is told by who opens it.
void check_model_name(const std::string& model);

}  // namespace sluice::app
