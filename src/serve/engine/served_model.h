// What a server says of its model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "serve/backend.h"
#include "serve/engine/engine_backend.h"
#include "serve/engine/loaded_model.h"

namespace sluice::serve {

// `model` must outlive the result.
std::shared_ptr<const Served> served_model(const LoadedModel& model, const EngineBackendOptions& options,
                                           const tokenizer::AnswerFormat& format);
// version, isa, math, kv, fingerprint
std::vector<std::string> build_labels(const LoadedModel& model, const EngineBackendOptions& options,
                                      const Served& served);
ModelCard model_card(const LoadedModel& model, ModelCard card);

}  // namespace sluice::serve
