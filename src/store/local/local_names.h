// Names of models that lie on this machine, as people type them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "store/local/local_models.h"

namespace sluice::store {

// Whether `text` may be a name: it is not written as a path (/models, ./models, ~/models).
bool may_be_local_name(std::string_view text);

// The models that `name` means. The exact name counts before any other reading, then the same without regard
// to capitals, Ollama's NAME for NAME:latest, the repository (ORG/NAME), and last the part behind the last
// slash, of a GGUF file with or without its ending and the number of its part.
std::vector<const LocalModel*> local_models_named(const LocalModels& here, std::string_view name);

// Why `name` opens no model: none is called so, it means several, or the one lacks a piece.
// Error(kNotFound), (kUsage)
Error local_name_error(const LocalModels& here, const std::string& name);

}  // namespace sluice::store
