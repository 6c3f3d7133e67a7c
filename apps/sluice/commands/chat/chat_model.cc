#include "commands/chat/chat_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/setting.h"
#include "engine/session/prefix_cache.h"
#include "flags/draft_flag.h"
#include "report/start_warnings.h"
#include "setup/engine_options.h"
#include "setup/kept_measurements.h"
#include "tokenizer/chat/calls/answer_parser.h"

namespace sluice::app {
namespace {

// Prompts and answers of a chat are short beside what a model takes, and their keys and values are memory
// that experts then lack.
constexpr std::size_t kUsualContext = 4096;

std::size_t context_of(const EngineFlags& flags, const model::Model& model) {
  return flags.context != 0 ? context_tokens(flags, model)
                            : std::min<std::size_t>(kUsualContext, model.config.max_positions);
}

void check_goes_on(const model::Model& model) {
  if (!model.config.has_encoder()) return;
  throw Error(ErrorKind::kUnsupported, "a chat needs a model that goes on from its prompt")
      .in(model.config.model_type)
      .expected("a decoder alone")
      .found("an encoder-decoder")
      .fix("use another model, or sluice run");
}

void add(const tokenizer::AnswerEvent& event, ChatAnswer& answer) {
  using Kind = tokenizer::AnswerEvent::Kind;
  switch (event.kind) {
    case Kind::kReasoning:
      answer.reasoning += event.text;
      break;
    case Kind::kContent:
      answer.content += event.text;
      break;
    case Kind::kCallBegin:
      answer.calls.push_back({event.id, event.name, {}});
      break;
    case Kind::kCallArguments:
      answer.calls.back().arguments += event.text;
      break;
    case Kind::kCallEnd:
      break;
  }
}

}  // namespace

ChatModel::ChatModel(const EngineFlags& flags, const std::string& chat_template, engine::DraftKind draft) {
  engine::EngineOptions options = engine_options(flags);
  open_ = open_model(flags.model, WithTokenizer::kRequired, flags);
  check_goes_on(open_.model);
  context_ = context_of(flags, open_.model);
  prompt_ = std::make_unique<ChatPrompt>(open_, chat_template);
  options.positions = context_;
  options.draft = draft;
  options.draws = true;  // /set may turn it on
  engine_ = std::make_unique<engine::Engine>(*open_.checkpoint, open_.model,
                                             engine::resolve(options, *open_.checkpoint, open_.model),
                                             engine::generation_logit_rows(decoded_tokens(1, draft)));
  write_start_warnings(engine_->report());
  keep_profile(flags, *engine_);
}

ChatAnswer ChatModel::answer(const Json& messages, const ChatSettings& settings, std::uint64_t seed,
                             const OnPrompt& on_prompt, const OnEvent& on_event,
                             const std::function<bool()>& should_stop) {
  const RenderedChat chat = prompt_->render(messages, settings.think);
  if (chat.tokens.size() > context_)
    throw Error(ErrorKind::kInvalid, "the conversation is longer than the context")
        .in(Setting::kContext)
        .expected(fmt::format("at most {} tokens", context_))
        .found(fmt::format("{} tokens", chat.tokens.size()))
        .fix("take back a part with /undo, forget it with /clear, or start with a larger " +
             Setting::kContext);
  ChatAnswer answer;
  answer.prompt_tokens = chat.tokens.size();
  // Calls of different answers have different ids.
  tokenizer::AnswerParser parser(
      prompt_->format(), nullptr,
      {.prompt = chat.text, .begun = {}, .tools = {}, .any_calls = true, .seed = seed + chat.tokens.size()});
  const auto give = [&](const std::vector<tokenizer::AnswerEvent>& events) {
    for (const tokenizer::AnswerEvent& event : events) {
      add(event, answer);
      on_event(event);
    }
  };
  engine::GenerateRequest request;
  request.prompt = chat.tokens;
  request.max_tokens = settings.most_tokens == 0 ? context_ : settings.most_tokens;
  request.sampler = settings.sampler;
  request.sampler.seed = seed;
  request.stop = settings.stop;
  request.stop.insert(request.stop.end(), prompt_->stop().begin(), prompt_->stop().end());
  request.ends = prompt_->ends();
  if (prompt_->marks_are_special()) request.special = tokenizer::ShowSpecial::kYes;
  bool answers = false;
  request.on_text = [&](const std::string& text, std::size_t) {
    answers = true;
    give(parser.append(text));
  };
  request.keep = true;
  // While the prompt is computed it is asked before each sparse layer of each chunk, and behind the last.
  const std::size_t fresh = chat.tokens.size() - engine_->prefixes().find(chat.tokens);
  const std::size_t chunks = (fresh + engine_->chunk() - 1) / engine_->chunk();
  const auto sparse = std::ranges::count(open_.model.config.sparse, true);
  const auto layers = static_cast<double>(chunks) * (static_cast<double>(sparse) + 1);
  double asked = 0;
  request.should_stop = [&] {
    if (!answers) on_prompt(std::min(1.0, asked++ / layers), fresh);
    return should_stop();
  };
  answer.result = engine::generate(*engine_, open_.tokenizer.get(), request);
  give(parser.finish());
  return answer;
}

}  // namespace sluice::app
