// Loads the model that a server answers with.
#pragma once

#include "commands/serve/serve_flags.h"
#include "engine/plan/options.h"
#include "serve/backend.h"
#include "serve/engine/loaded_model.h"

namespace sluice::app {

// The model's name for clients, and when it was last changed.
serve::ModelCard served_card(const ServeFlags& flags);
// To be called on the engine's thread. `options`: of `flags` (engine_options()). Errors of the model, of its
// template, and of a budget that is too small.
serve::LoadModel load_served(const ServeFlags& flags, const engine::EngineOptions& options);

}  // namespace sluice::app
