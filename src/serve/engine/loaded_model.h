// A model that a server answers with, as it has been loaded.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/json/json.h"
#include "engine/engine.h"
#include "model/architecture.h"
#include "serve/text_request.h"
#include "store/checkpoint.h"
#include "tokenizer/chat/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace sluice::serve {

// Members refer to those above them.
struct LoadedModel {
  std::unique_ptr<store::Checkpoint> checkpoint;
  model::Model model;
  std::unique_ptr<tokenizer::Tokenizer> tokenizer;  // null: prompts are ids, and answers have no text
  std::unique_ptr<tokenizer::ChatTemplate> chat;    // null: there is none
  std::string chat_failure;                         // why there is none though the model has one
  std::unique_ptr<engine::Engine> engine;
  Json plan;  // what the command plan prints as JSON
  SamplingDefaults defaults;
};

// Called on the engine's thread. `progress`: how far it is, 0 … 1. Errors of a model that cannot be loaded.
using LoadModel = std::function<std::unique_ptr<LoadedModel>(const std::function<void(double)>& progress)>;

}  // namespace sluice::serve
