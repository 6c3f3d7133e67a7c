// For tests: a backend whose answers are written down.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "serve/backend.h"
#include "tokenizer/chat/chat_sources.h"
#include "tokenizer/chat/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace sluice::serve::testing {

// The bundled model's tokenizer with the template chatml. Answers by its script, which runs within submit();
// without one nothing comes until push().
class ScriptedBackend final : public Backend {
 public:
  using Script = std::function<void(const std::vector<TextRequest>& sequences, EventQueue& events)>;

  explicit ScriptedBackend(bool with_template = true)
      : tokenizer_(tokenizer::load_tokenizer(SLUICE_SOURCE_DIR "/models/fable-moe-18m")) {
    if (with_template) {
      tokenizer::ChatSources sources;
      sources.templates.push_back(tokenizer::read_given_template("chatml"));
      template_.emplace(sources);
    }
    auto served = std::make_shared<Served>();
    served->context = 2048;
    served->vocabulary = tokenizer_->vocab_size();
    served->parallel = 4;
    served->fingerprint = "sluice-0.3-8c1f2ab4";
    served->tokenizer = tokenizer_.get();
    served->chat = template_ ? &*template_ : nullptr;
    served->answer_format = tokenizer::answer_format("");
    served->tokenizer_class = "PreTrainedTokenizerFast";
    served->bos_token = "<s>";
    served->bytes_of = [this](tokenizer::TokenId id) { return bytes_of(id); };
    served_ = std::move(served);
    card_ = {"qwen3", 1795440000,
             CardMeta{8192, 40960, 30532122624, 61064245248, 128, 8, "qwen3_moe", "split"}};
    slots_.resize(4);
    for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i].id = i;
  }

  // ---- What tests set up; before the server runs, or by these.
  void set_script(Script script) {
    locked([&] { script_ = std::move(script); });
  }
  void set_state(LoadState state) {
    locked([&] { state_ = std::move(state); });
  }
  void set_refusal(std::optional<Refusal> refusal) {
    locked([&] { refusal_ = std::move(refusal); });
  }
  void set_place(std::optional<QueuePlace> place) {
    locked([&] { place_ = place; });
  }
  void set_board(ExpertBoard board) {
    locked([&] { board_ = std::move(board); });
  }
  void set_slots(std::vector<SlotState> slots) {
    locked([&] { slots_ = std::move(slots); });
  }
  void set_token(tokenizer::TokenId id, std::string bytes) {
    locked([&] { bytes_.emplace_back(id, std::move(bytes)); });
  }
  Served& served_for_change() { return const_cast<Served&>(*served_); }

  // Pushes to the newest request.
  bool push(std::size_t sequence, EventBody body) {
    std::shared_ptr<EventQueue> queue = locked([&] { return queue_; });
    return queue != nullptr && queue->push({sequence, std::move(body), {}});
  }
  std::vector<TextRequest> last_request() const {
    return locked([&] { return last_; });
  }
  std::size_t submitted() const {
    return locked([&] { return submitted_; });
  }
  std::size_t watchers() const { return watchers_; }
  bool wait_for_submitted(std::size_t count) {
    return wait([&] { return submitted_ >= count; });
  }
  bool wait_for_cancelled(std::size_t count) {
    return wait([&] { return cancelled_ >= count; });
  }

  // ---- Backend
  LoadState state() const override {
    return locked([&] { return state_; });
  }
  ModelCard card() const override {
    return locked([&] {
      ModelCard card = card_;
      if (state_.phase == Phase::kLoading) card.meta.reset();
      return card;
    });
  }
  std::shared_ptr<const Served> served() const override {
    return locked([&] { return state_.phase == Phase::kLoading ? nullptr : served_; });
  }
  std::variant<RequestId, Refusal> submit(std::vector<TextRequest> sequences,
                                          std::shared_ptr<EventQueue> events) override {
    Script script;
    {
      const std::lock_guard lock(mutex_);
      if (refusal_) return *refusal_;
      queue_ = events;
      last_ = sequences;
      ++submitted_;
      script = script_;
    }
    changed_.notify_all();
    if (script) script(sequences, *events);
    return RequestId{submitted()};
  }
  void cancel(RequestId) override {
    locked([&] { ++cancelled_; });
    changed_.notify_all();
  }
  std::optional<QueuePlace> place_of(RequestId) const override {
    return locked([&] { return place_; });
  }
  void begin_drain() override {
    locked([&] { state_.phase = Phase::kDraining; });
  }
  void set_watchers(std::size_t count) override { watchers_ = count; }
  ExpertBoard experts() const override {
    return locked([&] { return board_; });
  }
  std::vector<SlotState> slots() const override {
    return locked([&] { return slots_; });
  }
  std::string plan_json() const override { return R"({"budget":67108864})"; }
  std::string stats_json() const override { return R"({"t":1.5})"; }
  void collect(MetricSet& metrics) const override {
    metrics.add("num_requests_running", 1);
    metrics.add("kv_blocks", {"free"}, 3);
    metrics.add("build_info", {"0.3", "avx2", "a\"b\\c", "bf16", "8c1f2ab4"}, 1);
  }

 private:
  template <class Work>
  std::invoke_result_t<Work> locked(Work work) const {
    const std::lock_guard lock(mutex_);
    return work();
  }
  template <class Ready>
  bool wait(Ready ready) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), ready);
  }
  std::string bytes_of(tokenizer::TokenId id) const {
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [one, bytes] : bytes_)
        if (one == id) return bytes;
    }
    const tokenizer::TokenId ids[] = {id};
    return tokenizer_->decode(ids, tokenizer::ShowSpecial::kYes);
  }

  const std::unique_ptr<tokenizer::Tokenizer> tokenizer_;
  std::optional<tokenizer::ChatTemplate> template_;
  std::shared_ptr<const Served> served_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Script script_;
  LoadState state_{Phase::kReady, 1, {}};
  ModelCard card_;
  std::optional<Refusal> refusal_;
  std::optional<QueuePlace> place_;
  ExpertBoard board_;
  std::vector<SlotState> slots_;
  std::vector<std::pair<tokenizer::TokenId, std::string>> bytes_;
  std::shared_ptr<EventQueue> queue_;
  std::vector<TextRequest> last_;
  std::size_t submitted_ = 0, cancelled_ = 0;
  std::atomic<std::size_t> watchers_ = 0;
};

// The end of an answer with the numbers of the specification's examples.
inline Finish example_finish(FinishReason reason = FinishReason::kStop) {
  return {reason, {}, {41, 32, 9, 4, 1, 10, 7, 3, 1024}, {1.5, 20, 80, 0}};
}

}  // namespace sluice::serve::testing
