// A model that chats: messages become a prompt, the prompt an answer, and what both have in common with the
// next prompt stays in the key/value cache.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "commands/chat/chat_prompt.h"
#include "commands/chat/chat_settings.h"
#include "commands/chat/dialogue.h"
#include "engine/engine.h"
#include "engine/generate/generate.h"
#include "engine/plan/draft_kind.h"
#include "flags/engine_flags.h"
#include "setup/open_model.h"
#include "tokenizer/chat/calls/answer_event.h"

namespace sluice::app {

struct ChatAnswer {
  std::string content, reasoning;
  std::vector<ChatCall> calls;
  std::size_t prompt_tokens = 0;
  engine::GenerateResult result;  // its text is the answer as the model wrote it
};

// Thread-compatible.
class ChatModel {
 public:
  // Opens the model and makes its engine. Error(kNotFound) without a tokenizer or a chat template.
  ChatModel(const EngineFlags& flags, const std::string& chat_template, engine::DraftKind draft);

  const OpenModel& open() const { return open_; }
  engine::Engine& engine() { return *engine_; }
  const ChatPrompt& prompt() const { return *prompt_; }
  std::size_t context() const { return context_; }  // most tokens of prompt and answer

  using OnEvent = std::function<void(const tokenizer::AnswerEvent&)>;
  // How far the prompt is computed, from 0 to 1, and its tokens that are.
  using OnPrompt = std::function<void(double done, std::size_t tokens)>;
  // Answers the last of the messages (docs/chat-templates.md). `on_event` gets the answer as it comes.
  // `should_stop` ends it there, with what has come. Error(kInvalid) for a prompt that does not fit the
  // context, and for messages that the template refuses; then nothing has changed.
  ChatAnswer answer(const Json& messages, const ChatSettings& settings, std::uint64_t seed,
                    const OnPrompt& on_prompt, const OnEvent& on_event,
                    const std::function<bool()>& should_stop);

 private:
  OpenModel open_;
  std::size_t context_ = 0;
  std::unique_ptr<ChatPrompt> prompt_;
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace sluice::app
