// A model behind the server: requests go to a batcher on the engine's own thread, events come back.
//
//   HTTP threads                    the engine's thread
//   submit, cancel, drain  ──>  messages  ──>  Batcher  ──>  AnswerStream  ──>  EventQueue of the request
//   boards, metrics        <──  snapshots between passes
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "serve/backend.h"
#include "serve/engine/loaded_model.h"

namespace sluice::serve {

struct EngineBackendOptions {
  ModelCard card;             // without meta
  std::string version;        // the program's, for the fingerprint
  std::size_t queue = 64;     // requests that may wait
  double decode_share = 0.5;  // BatchRules::decode_share
  bool trust_special = false;
  std::string tool_format;  // Setting::kToolFormat; empty: as the template has it
};

class EngineBackend final : public Backend {
 public:
  explicit EngineBackend(EngineBackendOptions options);
  ~EngineBackend() override;  // ends running requests

  LoadState state() const override;
  ModelCard card() const override;
  std::shared_ptr<const Served> served() const override;
  std::variant<RequestId, Refusal> submit(std::vector<TextRequest> sequences,
                                          std::shared_ptr<EventQueue> events) override;
  void cancel(RequestId id) override;
  std::optional<QueuePlace> place_of(RequestId id) const override;
  void begin_drain() override;
  void set_watchers(std::size_t count) override;
  ExpertBoard experts() const override;
  std::vector<SlotState> slots() const override;
  std::string plan_json() const override;
  std::string stats_json() const override;
  void collect(MetricSet& metrics) const override;

  // Begins to load, on the engine's thread; once.
  void load(LoadModel load);
  // Waits until the model is loaded, or cannot be. Error of the loader, or what has broken the engine since.
  void wait_until_loaded();

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::serve
