#include "serve/engine/engine_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/setting.h"
#include "engine/batch/batcher.h"
#include "engine/grammar/grammar_masks.h"
#include "engine/plan/memory_plan.h"
#include "engine/run_report.h"
#include "serve/engine/answer_stream.h"
#include "serve/engine/engine_board.h"
#include "serve/engine/request_desk.h"
#include "serve/engine/request_tickets.h"
#include "serve/engine/served_model.h"
#include "serve/histogram.h"
#include "serve/masks_room.h"
#include "serve/metric_table.h"
#include "tokenizer/chat/answer_ends.h"

namespace sluice::serve {
namespace {

constexpr const char* kFailed = "the engine has failed";
constexpr auto kIdlePause = std::chrono::milliseconds(500);

}  // namespace

class EngineBackend::Impl {
 public:
  explicit Impl(EngineBackendOptions options) : options_(std::move(options)), desk_(options_.queue) {}

  ~Impl() {
    desk_.stop();
    if (thread_.joinable()) thread_.join();
  }

  void load(LoadModel load) {
    thread_ = std::thread([this, load = std::move(load)] { run(load); });
  }

  // What the engine's thread has made; null until the model is loaded.
  struct Ready {
    std::shared_ptr<const Served> served;
    EngineBoard* board = nullptr;
    ModelCard card;
    std::vector<std::string> build;  // labels of the metric build_info
  };
  std::shared_ptr<const Ready> ready() const {
    const std::lock_guard lock(mutex_);
    return ready_;
  }

  LoadState state() const {
    const std::lock_guard lock(mutex_);
    LoadState state;
    state.failure = failure_ ? failure_->what() : "";
    state.progress = ready_ ? 1.0 : progress_;
    state.phase = draining_ ? Phase::kDraining : ready_ ? Phase::kReady : Phase::kLoading;
    return state;
  }

  void wait_until_loaded() {
    std::unique_lock lock(mutex_);
    loaded_.wait(lock, [&] { return ready_ != nullptr || failure_.has_value(); });
    if (failure_) throw Error(*failure_);
  }

  void begin_drain() {
    {
      const std::lock_guard lock(mutex_);
      draining_ = true;
    }
    desk_.drain();
  }

  const EngineBackendOptions options_;
  RequestDesk desk_;
  // What masks of bound answers took; any thread may read it.
  Histogram mask_times{metric_row("grammar_mask_seconds").bounds};
  std::atomic<std::uint64_t> mask_hits{0}, mask_misses{0};

 private:
  void run(const LoadModel& load) {
    try {
      model_ = load([this](double progress) {
        const std::lock_guard lock(mutex_);
        progress_ = progress;
      });
      serve(*model_);
    } catch (const Error& error) {
      fail(error);
    } catch (const std::exception& error) {
      fail(Error(ErrorKind::kIo, error.what()));
    }
  }

  // Also where the engine breaks later: nothing more is answered then.
  void fail(const Error& error) {
    {
      const std::lock_guard lock(mutex_);
      failure_ = error;
      ready_ = nullptr;
    }
    loaded_.notify_all();
    // Clients that have come meanwhile are told.
    for (NewRequest& request : desk_.take(false, {}).submitted)
      for (std::size_t i = 0; i < request.sequences.size(); ++i)
        request.events->push({.sequence = i, .body = Failure{Failure::Kind::kError, kFailed}});
  }

  void serve(LoadedModel& model) {
    engine::Engine& engine = *model.engine;
    board_ = std::make_unique<EngineBoard>(engine, model.plan);
    EngineBoard& board = *board_;
    if (!engine.report().model.config.has_encoder())
      engine.observe(board.watch());  // an encoder is not observed
    AnswerReading reading;
    std::vector<tokenizer::TokenId> chat_ends;
    reading.tokenizer = model.tokenizer.get();
    if (model.chat) {
      reading.format = tokenizer::answer_format(model.chat->source(true), options_.tool_format,
                                                model.chat->caps(true).tools);
      tokenizer::AnswerEnds ends =
          tokenizer::answer_ends(model.chat->caps(false), *model.tokenizer, reading.format.reasoning.end);
      chat_ends = std::move(ends.tokens);
      reading.ends = std::move(ends.texts);
    }
    if (model.tokenizer != nullptr && model.chat != nullptr)
      masks_ =
          std::make_unique<engine::GrammarMasks>(*model.tokenizer, masks_room(engine.report().memory.serve));
    const std::size_t parallel = engine.report().plan.sequences;
    engine::Batcher batcher(engine, {.parallel = parallel, .decode_share = options_.decode_share});
    RequestTickets tickets(batcher, reading, chat_ends, parallel, masks_.get());
    board.publish(batcher.load(), true);
    desk_.report(tickets.report());
    announce(model, board, reading.format);
    try {
      loop(batcher, tickets, board);
    } catch (const std::exception&) {
      tickets.fail_all({Failure::Kind::kError, kFailed});  // nobody waits for what never comes
      throw;
    }
  }

  void announce(const LoadedModel& model, EngineBoard& board, const tokenizer::AnswerFormat& format) {
    auto ready = std::make_shared<Ready>();
    ready->served = served_model(model, options_, format);
    ready->board = &board;
    ready->card = model_card(model, options_.card);
    ready->build = build_labels(model, options_, *ready->served);
    {
      const std::lock_guard lock(mutex_);
      ready_ = std::move(ready);
    }
    loaded_.notify_all();
  }

  void loop(engine::Batcher& batcher, RequestTickets& tickets, EngineBoard& board) {
    bool idle = true, drains = false;
    for (;;) {
      DeskMessages messages = desk_.take(idle, kIdlePause);
      const bool nothing = messages.submitted.empty() && messages.cancelled.empty();
      for (NewRequest& request : messages.submitted) tickets.submit(std::move(request));
      for (const RequestId id : messages.cancelled) tickets.cancel(id);
      if (messages.drain) {
        tickets.cancel_waiting(Failure::Kind::kDraining);
        drains = true;
      }
      if (messages.stop) tickets.cancel_all(drains ? Failure::Kind::kDraining : Failure::Kind::kCancelled);
      const bool worked = batcher.advance();
      count_masks();
      tickets.tidy();
      desk_.report(tickets.report());
      const bool rests = !worked && tickets.empty();
      if (!idle || !nothing || board.watched()) board.publish(batcher.load(), rests);
      idle = rests;
      if (messages.stop && tickets.empty()) return;
    }
  }

  void count_masks() {
    if (masks_ == nullptr) return;
    for (const double seconds : masks_->take_times()) mask_times.add(seconds);
    mask_hits.store(masks_->counts().hits, std::memory_order_relaxed);
    mask_misses.store(masks_->counts().misses, std::memory_order_relaxed);
  }

  // Written by the engine's thread before `ready_` tells of them; they live as long as this, since other
  // threads may still look where the engine has failed.
  std::unique_ptr<LoadedModel> model_;
  std::unique_ptr<EngineBoard> board_;
  std::unique_ptr<engine::GrammarMasks> masks_;
  mutable std::mutex mutex_;  // protects what follows, but the thread
  std::condition_variable loaded_;
  std::shared_ptr<const Ready> ready_;
  std::optional<Error> failure_;
  double progress_ = 0;
  bool draining_ = false;
  std::thread thread_;  // the last member: it uses the others
};

EngineBackend::EngineBackend(EngineBackendOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}

EngineBackend::~EngineBackend() = default;

LoadState EngineBackend::state() const { return impl_->state(); }

ModelCard EngineBackend::card() const {
  const auto ready = impl_->ready();
  return ready ? ready->card : impl_->options_.card;
}

std::shared_ptr<const Served> EngineBackend::served() const {
  const auto ready = impl_->ready();
  return ready ? ready->served : nullptr;
}

std::variant<RequestId, Refusal> EngineBackend::submit(std::vector<TextRequest> sequences,
                                                       std::shared_ptr<EventQueue> events) {
  Refusal refusal;
  const auto ready = impl_->ready();
  if (impl_->state().phase == Phase::kDraining || !ready) {
    refusal.reason = ready ? Refusal::Reason::kDraining : Refusal::Reason::kLoading;
    return refusal;
  }
  refusal.context = ready->served->context;
  for (const TextRequest& sequence : sequences) {
    if (sequence.prompt.size() + sequence.max_tokens.value_or(0) <= refusal.context) continue;
    refusal.reason = Refusal::Reason::kTooLong;
    refusal.prompt_tokens = sequence.prompt.size();
    return refusal;
  }
  if (const auto id = impl_->desk_.submit(std::move(sequences), std::move(events))) return *id;
  refusal.reason = Refusal::Reason::kQueueFull;
  refusal.retry_after_s = impl_->desk_.retry_after_s();
  return refusal;
}

void EngineBackend::cancel(RequestId id) { impl_->desk_.cancel(id); }

std::optional<QueuePlace> EngineBackend::place_of(RequestId id) const { return impl_->desk_.place_of(id); }

void EngineBackend::begin_drain() { impl_->begin_drain(); }

void EngineBackend::set_watchers(std::size_t count) {
  if (const auto ready = impl_->ready()) ready->board->set_watchers(count);
}

ExpertBoard EngineBackend::experts() const {
  const auto ready = impl_->ready();
  return ready ? ready->board->experts() : ExpertBoard{};
}

std::vector<SlotState> EngineBackend::slots() const { return impl_->desk_.slots(); }

std::string EngineBackend::plan_json() const {
  const auto ready = impl_->ready();
  return ready ? ready->board->plan_json() : "{}";
}

std::string EngineBackend::stats_json() const {
  const auto ready = impl_->ready();
  return ready ? ready->board->stats_json() : "{}";
}

void EngineBackend::collect(MetricSet& metrics) const {
  const auto ready = impl_->ready();
  if (!ready) return;
  metrics.add("build_info", ready->build, 1);
  ready->board->collect(metrics);
  metrics.add("grammar_mask_seconds", impl_->mask_times.state());
  metrics.add("grammar_mask_cache_hits_total", static_cast<double>(impl_->mask_hits.load()));
  metrics.add("grammar_mask_cache_misses_total", static_cast<double>(impl_->mask_misses.load()));
}

void EngineBackend::load(LoadModel load) { impl_->load(std::move(load)); }

void EngineBackend::wait_until_loaded() { impl_->wait_until_loaded(); }

}  // namespace sluice::serve
